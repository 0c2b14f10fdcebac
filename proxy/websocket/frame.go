package websocket

import (
	"bufio"
	"encoding/binary"
	"io"
)

// Opcodes of RFC 6455 section 5.2.
const (
	opContinuation = 0
	opText         = 1
	opBinary       = 2
	opClose        = 8
	opPing         = 9
	opPong         = 10
)

// Status codes of RFC 6455 section 7.4.1.
const (
	GoingAway     = 1001
	protocolError = 1002
	notUTF8       = 1007
	PolicyEnded   = 1008
	TryAgainLater = 1013 // of IANA's registry
)

// violation is a violation of the protocol, with its status code.
type violation struct {
	code int
	why  string
}

func (v violation) Error() string { return "relay a WebSocket: " + v.why }

type header struct {
	fin    bool
	op     byte
	masked bool
	mask   [4]byte
	length int64
}

func (h header) control() bool { return h.op >= opClose }

// readHeader reads one frame's header, strictly: no reserved bit (no
// extension was agreed on), no reserved opcode, a control frame whole and of
// at most 125 bytes, a length in its shortest form, masked as its direction
// asks for (RFC 6455 sections 5.1, 5.2 and 5.5).
func readHeader(r *bufio.Reader, masked bool) (header, error) {
	var b [8]byte
	if _, err := io.ReadFull(r, b[:2]); err != nil {
		return header{}, err
	}
	h := header{fin: b[0]&0x80 != 0, op: b[0] & 0x0f, masked: b[1]&0x80 != 0, length: int64(b[1] & 0x7f)}
	switch {
	case b[0]&0x70 != 0:
		return h, violation{protocolError, "a reserved bit is set"}
	case h.op > opBinary && h.op < opClose || h.op > opPong:
		return h, violation{protocolError, "the opcode is reserved"}
	case h.masked != masked:
		return h, violation{protocolError, "the mask is not as the direction asks for"}
	case h.control() && (!h.fin || h.length > 125):
		return h, violation{protocolError, "a control frame is in pieces or too long"}
	}
	switch h.length {
	case 126:
		if _, err := io.ReadFull(r, b[:2]); err != nil {
			return h, err
		}
		if h.length = int64(binary.BigEndian.Uint16(b[:2])); h.length < 126 {
			return h, violation{protocolError, "a length is not in its shortest form"}
		}
	case 127:
		if _, err := io.ReadFull(r, b[:8]); err != nil {
			return h, err
		}
		n := binary.BigEndian.Uint64(b[:8])
		if n < 1<<16 || n > 1<<62 {
			return h, violation{protocolError, "a length is not in its shortest form, or absurd"}
		}
		h.length = int64(n)
	}
	if masked {
		if _, err := io.ReadFull(r, h.mask[:]); err != nil {
			return h, err
		}
	}
	return h, nil
}

// append writes the header to out.
func (h header) append(out []byte) []byte {
	first, second := h.op, byte(0)
	if h.fin {
		first |= 0x80
	}
	if h.masked {
		second = 0x80
	}
	switch {
	case h.length < 126:
		out = append(out, first, second|byte(h.length))
	case h.length < 1<<16:
		out = binary.BigEndian.AppendUint16(append(out, first, second|126), uint16(h.length))
	default:
		out = binary.BigEndian.AppendUint64(append(out, first, second|127), uint64(h.length))
	}
	if h.masked {
		out = append(out, h.mask[:]...)
	}
	return out
}

// apply masks or unmasks p, whose first byte is the at-th of its frame.
func apply(mask [4]byte, p []byte, at int64) {
	for i := range p {
		p[i] ^= mask[(at+int64(i))&3]
	}
}

// sequence holds a direction's frames to their order (RFC 6455 section 5.4).
type sequence struct {
	open bool // a message is in pieces
	text bool
}

func (s *sequence) next(h header) error {
	switch {
	case h.control():
		return nil
	case s.open != (h.op == opContinuation):
		return violation{protocolError, "the pieces of a message are out of order"}
	case !s.open:
		s.text = h.op == opText
	}
	s.open = !h.fin
	return nil
}
