package attacks

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// h2: HTTP/2 inside the tunnel, and of the origin.
func h2() category {
	return category{name: "H2"}
}

// h2conn is an HTTP/2 client that sends what it is told.
type h2conn struct {
	c       *trial
	l       *line
	f       *http2.Framer
	table   *hpack.Decoder
	answers map[uint32]*answer
	resets  map[uint32]http2.ErrCode
	gone    *http2.GoAwayFrame
	err     error
}

// h2 opens a tunnel whose client offers h2 alone, and greets.
func (c *trial) h2(host string) *h2conn {
	l, a := c.connect(host)
	c.is("CONNECT", a, 200)
	in, err := c.secure(l, &tls.Config{ServerName: strings.Split(host, ":")[0], NextProtos: []string{"h2"}}) //nolint:gosec // secure sets the least version
	c.must(err)
	h := &h2conn{c: c, l: in, f: http2.NewFramer(in, in), answers: map[uint32]*answer{}, resets: map[uint32]http2.ErrCode{}}
	h.f.AllowIllegalWrites = true
	h.f.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	_, _ = io.WriteString(in, http2.ClientPreface)
	_ = h.f.WriteSettings()
	return h
}

// headers encodes pairs of names and values as they are.
func headers(pairs ...string) []byte {
	var b bytes.Buffer
	e := hpack.NewEncoder(&b)
	for i := 0; i+1 < len(pairs); i += 2 {
		_ = e.WriteField(hpack.HeaderField{Name: pairs[i], Value: pairs[i+1]})
	}
	return b.Bytes()
}

func (h *h2conn) send(id uint32, end bool, pairs ...string) {
	_ = h.f.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: headers(pairs...), EndHeaders: true, EndStream: end})
}

// request sends a whole request without a body.
func (h *h2conn) request(id uint32, method, authority, path string, pairs ...string) {
	h.send(id, true, append([]string{":method", method, ":scheme", "https", ":authority", authority, ":path", path}, pairs...)...)
}

// answer reads until the stream has ended: with an answer, a reset (status 0)
// or the connection's end.
func (h *h2conn) answer(id uint32) answer {
	_ = h.l.SetReadDeadline(time.Now().Add(h.c.s.patience))
	for h.err == nil {
		if a, ok := h.answers[id]; ok && a.last {
			readError(a)
			return *a
		}
		if _, ok := h.resets[id]; ok {
			return answer{err: errors.New("the stream was reset")}
		}
		h.read()
	}
	return answer{err: h.err}
}

// read takes one frame.
func (h *h2conn) read() {
	frame, err := h.f.ReadFrame()
	if err != nil {
		h.err = err
		return
	}
	switch f := frame.(type) {
	case *http2.SettingsFrame:
		if !f.IsAck() {
			_ = h.f.WriteSettingsAck()
		}
	case *http2.PingFrame:
		if !f.IsAck() {
			_ = h.f.WritePing(true, f.Data)
		}
	case *http2.MetaHeadersFrame:
		a := h.answers[f.StreamID]
		if a == nil {
			a = &answer{header: map[string][]string{}}
			h.answers[f.StreamID] = a
		}
		if s := f.PseudoValue("status"); s != "" {
			a.status, _ = strconv.Atoi(s)
			if a.status < 200 {
				a.interim++
			}
		}
		for _, field := range f.RegularFields() {
			a.header.Add(field.Name, field.Value)
			h.c.plain(field.Name + ": " + field.Value + "\n")
		}
		a.last = f.StreamEnded()
	case *http2.DataFrame:
		a := h.answers[f.StreamID]
		if a == nil {
			h.err = errors.New("data without a head")
			return
		}
		a.body += string(f.Data())
		a.last = f.StreamEnded()
		if n := uint32(len(f.Data())); n > 0 {
			_ = h.f.WriteWindowUpdate(0, n)
			_ = h.f.WriteWindowUpdate(f.StreamID, n)
		}
	case *http2.RSTStreamFrame:
		h.resets[f.StreamID] = f.ErrCode
	case *http2.GoAwayFrame:
		h.gone = f
	}
}
