package attacks

import (
	"bufio"
	"crypto/sha1"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/ALRubinger/aileron/proxy"
)

// upg: requests that want to leave HTTP.
func upg() category {
	return category{name: "UPG", cases: join(written("upgrades"), []attack{
		{id: "UPG-07", does: "the head of a 101 is searched as any other, and so are the frames", run: func(c *testCase) {
			c.origin("api.good.test").plays(func(v *visit) {
				s := v.credential()
				v.accept("Set-Cookie: sid="+s, "X-Echo: "+s, "Set-Cookie: sid=fresh")
				_, _ = v.conn.Write(frame(0x81, "whole "+s, false))
				_, _ = v.conn.Write(frame(0x01, "in parts "+s[:10], false))
				_, _ = v.conn.Write(frame(0x00, s[10:30], false))
				_, _ = v.conn.Write(frame(0x89, s, false)) // a ping between the parts
				_, _ = v.conn.Write(frame(0x80, s[30:], false))
				_, _ = v.conn.Write(frame(0x88, "\x03\xe8"+s, false))
				v.finish()
			})
			l, br := c.websocket()
			if l == nil {
				return
			}
			got := ""
			for {
				op, payload, err := readFrame(br)
				if err != nil {
					break
				}
				got += fmt.Sprintf("%x:%s|", op, payload)
				if op == 0x88 {
					break
				}
			}
			_ = l.Close()
			if !strings.Contains(got, "whole "+stars(40)) || strings.Count(got, "*") != 4*40 {
				c.failf("the frames came as %q", got)
			}
			c.redacted()
		}},
		{id: "UPG-08", does: "an open WebSocket ends with what it stands on", run: upgEnds},
		{id: "UPG-10", does: "frames that break the protocol end the connection, and go no further", run: upgFrames},
	})}
}

// accept answers a WebSocket's handshake.
func (v *visit) accept(fields ...string) {
	sum := sha1.Sum([]byte(v.Header.Get("Sec-Websocket-Key") + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
	v.send("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: %s\r\n",
		base64.StdEncoding.EncodeToString(sum[:]))
	for _, f := range fields {
		v.send("%s\r\n", f)
	}
	v.send("\r\n")
}

// finish reads what the client still sends, and ends the connection.
func (v *visit) finish() {
	_ = v.conn.SetReadDeadline(time.Now().Add(patience))
	_, _ = io.Copy(io.Discard, v.conn)
	v.keep, v.close = nil, true
}

// frame is a WebSocket's, its first byte as given.
func frame(first byte, payload string, masked bool) []byte {
	out := []byte{first}
	bit := byte(0)
	if masked {
		bit = 0x80
	}
	switch n := len(payload); {
	case n < 126:
		out = append(out, bit|byte(n))
	case n < 1<<16:
		out = binary.BigEndian.AppendUint16(append(out, bit|126), uint16(n))
	default:
		out = binary.BigEndian.AppendUint64(append(out, bit|127), uint64(n))
	}
	if masked {
		out = append(out, 0, 0, 0, 0)
	}
	return append(out, payload...)
}

func readFrame(br *bufio.Reader) (op byte, payload []byte, err error) {
	var head [2]byte
	if _, err := io.ReadFull(br, head[:]); err != nil {
		return 0, nil, err
	}
	masked, n := head[1]&0x80 != 0, uint64(head[1]&0x7f)
	if more := map[uint64]int{126: 2, 127: 8}[n]; more > 0 {
		size := make([]byte, 8)
		if _, err := io.ReadFull(br, size[8-more:]); err != nil {
			return 0, nil, err
		}
		n = binary.BigEndian.Uint64(size)
	}
	var mask [4]byte
	if masked {
		if _, err := io.ReadFull(br, mask[:]); err != nil {
			return 0, nil, err
		}
	}
	payload = make([]byte, min(n, 1<<20))
	_, err = io.ReadFull(br, payload)
	for i := range payload {
		payload[i] ^= mask[i%4]
	}
	return head[0], payload, err
}

// websocket opens one on the operation that declares it; nil when refused.
func (c *testCase) websocket() (*line, *bufio.Reader) {
	l := c.tunnel("api.good.test")
	if l == nil {
		return nil, nil
	}
	c.rows++
	_, _ = io.WriteString(l, head("GET", "api.good.test", "/v1/live", "Connection: Upgrade", "Upgrade: websocket",
		"Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA=="))
	br := bufio.NewReader(l)
	a := readAnswer(br, "GET")
	if a.status != 101 {
		c.failf("the handshake: %s", a)
		return nil, nil
	}
	if text := fmt.Sprint(a.header); strings.Contains(text, "Cookie") {
		c.failf("a cookie came with the 101: %s", text)
	}
	return l, br
}

func upgEnds(c *testCase) {
	for name, end := range map[string]func(w *world){
		"the session ends": func(w *world) { w.stop() },
		"the connector is removed": func(w *world) {
			w.plane.SetGrants(&proxy.Grants{Index: existing(grantsOf(fixture{connectors: []string{"key"}})).Index})
		},
		"the binding is revoked": func(w *world) {
			w.plane.SetGrants(existing(grantsOf(fixture{unbound: []string{"api"}})))
		},
		"the vault is locked": func(w *world) {
			w.plane.SetGrants(&proxy.Grants{Index: w.grants.Index, Scrub: w.grants.Scrub, Locked: true})
		},
	} {
		c.each(name, func(c *testCase) {
			c.unfit = true
			w := newWorld(c.t, fixture{})
			defer w.stop()
			c.strays = true
			late := make(chan struct{})
			c.origin("api.good.test").plays(func(v *visit) {
				v.accept()
				_, _ = v.conn.Write(frame(0x81, "open", false))
				<-late
				_, _ = v.conn.Write(frame(0x81, "too late", false))
				v.finish()
			})
			c.as(w, func() {
				l, br := c.websocket()
				if l != nil {
					if _, payload, err := readFrame(br); string(payload) != "open" {
						c.failf("the first frame: %q, %v", payload, err)
					}
					end(w)
					got, err := io.ReadAll(br) // ends when the plane ends it
					if err != nil && !strings.Contains(err.Error(), "EOF") && !strings.Contains(err.Error(), "reset") {
						c.failf("it stayed open: %v", err)
					}
					if strings.Contains(string(got), "late") {
						c.failf("frames went on: %q", got)
					}
				}
			})
			close(late)
		})
	}
}

func upgFrames(c *testCase) {
	long := strings.Repeat("x", 200)
	bad := map[string][]byte{
		"reserved bit": frame(0xc1, "a", true), "reserved opcode": frame(0x83, "a", true),
		"reserved control": frame(0x8b, "a", true), "long control": frame(0x89, long, true),
		"control in parts": frame(0x09, "a", true), "part of nothing": frame(0x80, "a", true),
		"two beginnings":          append(frame(0x01, "a", true), frame(0x81, "b", true)...),
		"no UTF-8":                frame(0x81, "\xc3\x28", true),
		"no UTF-8 in parts":       append(frame(0x01, "\xc3", true), frame(0x80, "\x28", true)...),
		"length of two spellings": {0x81, 0x80 | 126, 0, 1, 0, 0, 0, 0, 'a'},
		"length of 2^63":          {0x82, 0x80 | 127, 0x80, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0},
		"close of one byte":       frame(0x88, "a", true), "close code": frame(0x88, "\x03\xed", true),
		"close without UTF-8": frame(0x88, "\x03\xe8\xff", true),
	}
	c.each("unmasked", func(c *testCase) { c.badFrame(frame(0x81, "a", false), false) })
	for name, raw := range bad {
		c.each(name, func(c *testCase) { c.badFrame(raw, false) })
		if !strings.Contains(name, "UTF-8") && name != "close code" { // an origin's words are the client's to judge
			c.each(name+", of the origin", func(c *testCase) { c.badFrame(unmasked(raw), true) })
		}
	}
	c.each("masked, of the origin", func(c *testCase) { c.badFrame(frame(0x81, "a", true), true) })
}

// unmasked takes the mask, which is zero, out of one or two frames.
func unmasked(raw []byte) []byte {
	var out []byte
	for len(raw) > 0 {
		head := 2
		n := int(raw[1] & 0x7f)
		switch n {
		case 126:
			n, head = int(binary.BigEndian.Uint16(raw[2:])), 4
		case 127:
			n, head = 0, 10
		}
		out = append(out, raw[0], raw[1]&0x7f)
		out = append(out, raw[2:head]...)
		out = append(out, raw[head+4:head+4+n]...)
		raw = raw[head+4+n:]
	}
	return out
}

// badFrame has one side send what it may not. The client must receive a
// close frame or the connection's end, and the other side must not see it.
func (c *testCase) badFrame(raw []byte, ofOrigin bool) {
	c.strays = true
	var seen []byte // the first bytes of the frames that arrived
	done := make(chan struct{})
	c.origin("api.good.test").plays(func(v *visit) {
		defer close(done)
		v.accept()
		if ofOrigin {
			_, _ = v.conn.Write(raw)
		}
		_ = v.conn.SetReadDeadline(time.Now().Add(patience))
		for br := bufio.NewReader(v.conn); ; {
			op, _, err := readFrame(br)
			if err != nil || op == 0x88 {
				break
			}
			seen = append(seen, op)
		}
		v.keep, v.close = nil, true
	})
	l, br := c.websocket()
	if l == nil {
		return
	}
	if !ofOrigin {
		_, _ = l.Write(raw)
	}
	for told := false; !told; {
		op, payload, err := readFrame(br)
		told = err != nil || op == 0x88
		switch {
		case err != nil, op == 0x01, op == 0x00: // a part that was still good
		case op != 0x88:
			c.failf("the client got the frame %x %q", op, payload)
			told = true
		case len(payload) >= 2:
			if code := binary.BigEndian.Uint16(payload); code != 1002 && code != 1007 && code != 1009 && code != 1001 &&
				code != 1011 {
				c.failf("it was closed with %d", code)
			}
		}
	}
	_ = l.Close()
	c.wait("the end of the origin's side", done)
	for _, op := range seen {
		if op != 0x01 {
			c.failf("the origin got the frame %x", op)
		}
	}
}

// existing returns v, and panics on an error: the value was made before without one.
func existing[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
