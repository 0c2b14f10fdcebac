package opaque

import (
	"encoding/base64"
	"encoding/binary"
	"io"
)

// Messages is the body of a gRPC, gRPC-Web or Connect response: each message
// has five bytes in front of it, a flag and a length. judge is asked about
// "message" when the flag marks a message as compressed; what came before
// it has left by then.
func Messages(src io.ReadCloser, judge Judge) io.ReadCloser {
	return &messages{ReadCloser: src, judge: judge}
}

// Message is the format of a compressed message.
const Message Format = "message"

// TextMessages is [Messages] of gRPC-Web's text mode: the same in base64, which
// may be padded after each message.
func TextMessages(src io.ReadCloser, judge Judge) io.ReadCloser {
	return &messages{ReadCloser: src, judge: judge, text: true}
}

type messages struct {
	io.ReadCloser
	judge  Judge
	prefix [5]byte
	n      int    // how many bytes of the prefix have come
	left   uint64 // of the message
	text   bool
	four   [4]byte // characters of base64
	chars  int     // how many of four have come
	err    error
}

func (m *messages) Read(p []byte) (int, error) {
	if m.err != nil {
		return 0, m.err
	}
	n, err := m.ReadCloser.Read(p)
	scan := m.scan
	if m.text {
		scan = m.scanText
	}
	passed, refusal := scan(p[:n])
	if refusal != nil {
		m.err = &Refusal{refusal}
		clear(p[passed:n])
		return passed, m.err
	}
	return n, err
}

// scan follows the messages in data and returns how much of it is before a
// message that is refused.
func (m *messages) scan(data []byte) (passed int, refusal error) {
	const compressed = 1
	for at := 0; at < len(data); {
		if m.left > 0 {
			n := min(m.left, uint64(len(data)-at))
			m.left -= n
			at += int(n) //nolint:gosec // it is at most len(data)
			continue
		}
		if m.n == 0 && data[at]&compressed != 0 {
			if err := m.judge(Message); err != nil {
				return at, err
			}
		}
		m.prefix[m.n] = data[at]
		at++
		if m.n++; m.n == len(m.prefix) {
			m.n, m.left = 0, uint64(binary.BigEndian.Uint32(m.prefix[1:]))
		}
	}
	return len(data), nil
}

// scanText is scan for base64. What it lets pass ends before the four
// characters in which the refused message begins.
func (m *messages) scanText(data []byte) (passed int, refusal error) {
	start := 0
	for at, c := range data {
		switch {
		case c == '-':
			c = '+'
		case c == '_':
			c = '/'
		case c <= ' ':
			continue
		}
		if m.chars == 0 {
			start = at
		}
		m.four[m.chars] = c
		if m.chars++; m.chars < len(m.four) {
			continue
		}
		m.chars = 0
		var out [3]byte
		n, _ := base64.StdEncoding.Decode(out[:], m.four[:])
		if _, err := m.scan(out[:n]); err != nil {
			return start, err
		}
	}
	return len(data), nil
}
