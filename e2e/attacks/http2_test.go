package attacks

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/ALRubinger/aileron/proxy"
)

// h2: HTTP/2 inside the tunnel, and of the origin.
func h2() category {
	return category{name: "H2", unrun: map[string]string{
		"H2-01": "e2e/protocol runs h2spec, all of it",
	}, cases: join(written("http2"), []attack{
		{id: "H2-01b", does: "a client gets the version that it offers, HTTP/2 before HTTP/1.1", run: func(c *testCase) {
			for want, offers := range map[string][]string{"h2": {"h2", "http/1.1"}, "http/1.1": {"http/1.1"}} {
				c.each(want, func(c *testCase) {
					l, a := c.connect("api.good.test")
					c.is("CONNECT", a, 200)
					in, err := c.secure(l, &tls.Config{ServerName: "api.good.test", NextProtos: offers})
					c.must(err)
					c.rows = -1 // nothing is said on it, which of HTTP/2 makes a row
					if got := in.Conn.(*tls.Conn).ConnectionState().NegotiatedProtocol; got != want {
						c.failf("of %v, %q was chosen", offers, got)
					}
				})
			}
			c.each("h2 alone", func(c *testCase) {
				conn := c.h2("api.good.test")
				c.rows++
				conn.request(1, "GET", "api.good.test", "/v1/items")
				c.is("the request", conn.answer(1), 200)
			})
			c.each("neither", func(c *testCase) {
				l, a := c.connect("api.good.test")
				c.is("CONNECT", a, 200)
				c.rows++
				if _, err := c.secure(l, &tls.Config{ServerName: "api.good.test", NextProtos: []string{"spdy/3"}}); err == nil {
					c.failf("a connection for spdy/3 was taken")
				}
			})
		}},
		{id: "H2-06", does: "a body that is not as long as announced", run: func(c *testCase) {
			for name, body := range map[string]struct {
				want refusal
				send func(h *h2conn)
			}{ // refusal{}: the stream is reset while its request is on its way
				"longer":  {refusal{}, func(h *h2conn) { h.post("5"); _ = h.f.WriteData(1, true, []byte("0123456789")) }},
				"shorter": {refusal{}, func(h *h2conn) { h.post("5"); _ = h.f.WriteData(1, true, []byte("01")) }},
				"none":    {refusal{}, func(h *h2conn) { h.post("5"); _ = h.f.WriteData(1, true, nil) }},
				"two": {malformed, func(h *h2conn) {
					h.post("5", "content-length", "6")
					_ = h.f.WriteData(1, true,
						[]byte("01234"))
				}},
				"equal": {malformed, func(h *h2conn) {
					h.post("5", "content-length", "5")
					_ = h.f.WriteData(1, true,
						[]byte("01234"))
				}},
				"no number": {malformed, func(h *h2conn) { h.post("+5"); _ = h.f.WriteData(1, true, []byte("01234")) }},
				"head only": {malformed, func(h *h2conn) {
					h.send(1, true, ":method", "POST", ":scheme", "https", ":authority", "api.good.test", ":path", "/v1/items",
						"content-length", "5")
				}},
			} {
				c.each(name, func(c *testCase) {
					c.anew, c.strays, c.rows = true, true, 1
					h := c.h2("api.good.test")
					body.send(h)
					if a := h.answer(1); body.want != (refusal{}) {
						c.ended("the request", a, body.want)
					} else if a.status != 0 {
						c.failf("it was taken: %s", a)
					} else {
						c.undelivered("the request")
					}
				})
			}
		}},
		{id: "H2-09", does: "streams that are opened and reset without end", run: h2Resets},
		{id: "H2-10", does: "floods of frames that cost their sender nothing", run: h2Floods},
		{id: "H2-12", does: "an origin that misuses HTTP/2", f: &fixture{}, run: h2Origin},
		{id: "H2-13", does: "a hundred streams whose client does not read",
			f: &fixture{set: func(cfg *proxy.Config) { cfg.Limits.Wire.Stalled = 300 * time.Millisecond }},
			run: func(c *testCase) {
				c.bulk, c.rows = true, -1
				big := bytes.Repeat([]byte("x"), 1<<20)
				c.origin("api.good.test").plays(func(v *visit) { // without a copy for each: what is measured is the plane's
					v.send("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", len(big))
					_, _ = v.conn.Write(big)
				})
				before := heap()
				h := c.h2("api.good.test")
				_ = h.f.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
				for i := range uint32(100) {
					h.request(2*i+1, "GET", "api.good.test", "/v1/items")
				}
				_ = h.l.SetReadDeadline(time.Now().Add(c.s.patience))
				most := uint64(0)
				for h.err == nil && h.gone == nil && len(h.resets) < 100 {
					h.read()
					if len(h.answers) == 100 && len(h.resets)%25 == 0 {
						most = max(most, heap())
					}
				}
				if h.err == nil && h.gone == nil && len(h.resets) < 100 {
					c.failf("the streams were kept")
				}
				if most > before+32<<20 {
					c.failf("the heap grew by %d MiB", (most-before)>>20)
				}
			}},
	})}
}

// post begins a POST whose content-length is as given.
func (h *h2conn) post(length string, pairs ...string) {
	h.send(1, false, append([]string{":method", "POST", ":scheme", "https", ":authority", "api.good.test", ":path",
		"/v1/items", "content-length", length}, pairs...)...)
}

func h2Resets(c *testCase) {
	c.each("by the client", func(c *testCase) {
		c.rows, c.strays = -1, true
		h := c.h2("api.good.test")
		before := heap()
		go func() {
			for i := range uint32(700) {
				id := 2*i + 1
				h.request(id, "GET", "api.good.test", "/v1/items")
				if h.f.WriteRSTStream(id, http2.ErrCodeCancel) != nil {
					break
				}
			}
			h.l.end()
		}()
		_ = h.l.SetReadDeadline(time.Now().Add(c.s.patience))
		for h.err == nil {
			h.read()
		}
		if after := heap(); after > before+32<<20 {
			c.failf("the heap grew by %d MiB", (after-before)>>20)
		}
	})
	c.each("by the server", func(c *testCase) { // made to reset them: a window that grows by nothing
		c.rows, c.strays = -1, true
		h := c.h2("api.good.test")
		go func() {
			for i := range uint32(150) {
				id := 2*i + 1
				h.request(id, "GET", "api.good.test", "/v1/items")
				if h.f.WriteRawFrame(http2.FrameWindowUpdate, 0, id, []byte{0, 0, 0, 0}) != nil {
					break
				}
			}
			h.l.end()
		}()
		_ = h.l.SetReadDeadline(time.Now().Add(c.s.patience))
		for h.err == nil {
			h.read()
		}
	})
}

func h2Floods(c *testCase) {
	begin := func(h *h2conn) { // an open stream, for frames that need one
		h.send(1, false, ":method", "POST", ":scheme", "https", ":authority", "api.good.test", ":path", "/v1/items")
	}
	for name, flood := range map[string]struct {
		closes bool // the connection must not survive it
		send   func(h *h2conn, i int) error
	}{
		"CONTINUATION": {true, func(h *h2conn, i int) error {
			if i == 0 {
				return h.f.WriteHeaders(http2.HeadersFrameParam{StreamID: 3, BlockFragment: headers(":method", "GET")})
			}
			return h.f.WriteContinuation(3, false, headers("x-"+strconv.Itoa(i), strings.Repeat("y", 8000)))
		}},
		"empty CONTINUATION": {false, func(h *h2conn, i int) error {
			if i == 0 {
				return h.f.WriteHeaders(http2.HeadersFrameParam{StreamID: 3, BlockFragment: headers(":method", "GET")})
			}
			return h.f.WriteContinuation(3, false, nil)
		}},
		"HPACK bomb": {false, func(h *h2conn, i int) error {
			block := headers(":method", "GET", ":scheme", "https", ":authority", "api.good.test", ":path", "/v1/items", "bomb",
				strings.Repeat("z", 3000))
			block = append(block, bytes.Repeat([]byte{0x80 | 62}, 6000)...) // 62: the newest entry of the table
			return h.f.WriteHeaders(http2.HeadersFrameParam{StreamID: uint32(2*i + 3), BlockFragment: block, EndHeaders: true,
				EndStream: true})
		}},
		"empty names": {false, func(h *h2conn, i int) error {
			return h.f.WriteHeaders(http2.HeadersFrameParam{StreamID: uint32(2*i + 3), BlockFragment: headers("", ""),
				EndHeaders: true, EndStream: true})
		}},
		"PING": {false, func(h *h2conn, _ int) error { return h.f.WritePing(false, [8]byte{}) }},
		"SETTINGS": {false, func(h *h2conn, _ int) error {
			return h.f.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1})
		}},
		"PRIORITY": {false, func(h *h2conn, i int) error {
			return h.f.WritePriority(uint32(2*i+3), http2.PriorityParam{StreamDep: 1})
		}},
		"empty DATA": {false, func(h *h2conn, _ int) error { return h.f.WriteData(1, false, nil) }},
		"padding": {false, func(h *h2conn,
			_ int) error {
			return h.f.WriteDataPadded(1, false, nil, make([]byte, 255))
		}},
		"WINDOW_UPDATE": {true, func(h *h2conn, _ int) error { return h.f.WriteWindowUpdate(0, 1<<30) }},
		"large frame": {true, func(h *h2conn,
			_ int) error {
			return h.f.WriteRawFrame(http2.FrameData, 0, 1, make([]byte, 1<<20))
		}},
	} {
		c.each(name, func(c *testCase) {
			c.rows, c.strays, c.bulk = -1, true, true
			h := c.h2("api.good.test")
			begin(h)
			before := heap()
			go func() {
				for i := range 300 {
					if flood.send(h, i) != nil {
						return
					}
				}
				h.l.end()
			}()
			_ = h.l.SetReadDeadline(time.Now().Add(c.s.patience))
			for h.err == nil {
				h.read()
			}
			if after := heap(); after > before+32<<20 {
				c.failf("the heap grew by %d MiB", (after-before)>>20)
			}
			if flood.closes && h.gone == nil && errors.Is(h.err, os.ErrDeadlineExceeded) {
				c.failf("the connection goes on: %v", h.err)
			}
		})
	}
}

// h2Origin has the origin speak HTTP/2 by hand.
func h2Origin(c *testCase) {
	for name, misuse := range map[string]struct {
		want   refusal
		answer func(f *http2.Framer, id uint32) // the connection ends after a refusal
	}{
		"frame size of 0": {upstreamNotHTTP, func(f *http2.Framer, id uint32) {
			_ = f.WriteSettings(http2.Setting{ID: http2.SettingMaxFrameSize, Val: 0})
			respond(f, id, "ok")
		}},
		"push": {upstreamNotHTTP, func(f *http2.Framer, id uint32) {
			_ = f.WritePushPromise(http2.PushPromiseParam{StreamID: id, PromiseID: 2,
				BlockFragment: headers(":method", "GET", ":scheme", "https", ":authority", "api.good.test", ":path", "/admin"),
				EndHeaders:    true})
			respond(f, id, "ok")
		}},
		"GOAWAY": {upstreamClosed, func(f *http2.Framer, id uint32) {
			_ = f.WriteGoAway(id, http2.ErrCodeInternal, []byte(on.secrets["S1"]))
		}},
		"reset": {upstreamReset, func(f *http2.Framer, id uint32) { _ = f.WriteRSTStream(id, http2.ErrCodeInternal) }},
		"interim flood": {upstreamHead, func(f *http2.Framer, id uint32) {
			for range 5000 {
				if f.WriteHeaders(http2.HeadersFrameParam{StreamID: id,
					BlockFragment: headers(":status", "103", "link", on.secrets["S1"]), EndHeaders: true}) != nil {
					return
				}
			}
			respond(f, id, "ok")
			givenUp(f)
		}},
		"trailers": {taken, func(f *http2.Framer, id uint32) {
			_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: id,
				BlockFragment: headers(":status", "200", "trailer", "x-late", "x-early", on.secrets["S1"]), EndHeaders: true})
			_ = f.WriteData(id, false, []byte("body "+on.secrets["S1"]))
			_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: headers("x-late", on.secrets["S1"]),
				EndHeaders: true, EndStream: true})
		}},
		"in pieces": {taken, func(f *http2.Framer, id uint32) {
			_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: headers(":status", "200"), EndHeaders: true})
			for _, b := range []byte(on.secrets["S1"]) {
				_ = f.WriteData(id, false, []byte{b})
			}
			_ = f.WriteData(id, true, nil)
		}},
	} {
		c.each(name, func(c *testCase) {
			o := c.origin("api.good.test")
			o.cut()
			c.speaksH2(o, func(f *http2.Framer, id uint32) bool {
				misuse.answer(f, id)
				return misuse.want == taken
			})
			c.rows, c.strays, c.anew = 1, true, true
			h := c.h2("api.good.test")
			// which may be repeated: the pool may hold the last variant's connection
			h.request(1, "GET", "api.good.test", "/v1/items", "te", "trailers")
			a := h.answer(1)
			if a.interim > 0 {
				c.failf("%d interim answers arrived", a.interim)
			}
			c.judged("the answer", a, misuse.want)
		})
	}
}

// speaksH2 has an origin speak HTTP/2 by hand, until answer says that it is
// over.
func (c *testCase) speaksH2(o *origin, answer func(f *http2.Framer, id uint32) bool) {
	leaf, err := on.roots.leaf(o.host)
	c.must(err)
	o.takes(func(raw net.Conn) {
		conn := tls.Server(raw, &tls.Config{Certificates: []tls.Certificate{*leaf}, MinVersion: tls.VersionTLS12,
			NextProtos: []string{"h2", "http/1.1"}})
		preface := make([]byte, len(http2.ClientPreface))
		if _, err := io.ReadFull(conn, preface); err != nil || string(preface) != http2.ClientPreface {
			return
		}
		f := http2.NewFramer(conn, conn)
		f.AllowIllegalWrites = true
		_ = f.WriteSettings()
		for {
			frame, err := f.ReadFrame()
			if err != nil {
				return
			}
			if head, ok := frame.(*http2.HeadersFrame); ok && !answer(f, head.StreamID) {
				return
			}
		}
	})
}

// givenUp reads until the other side has given up the stream or the connection. Closed before that, with frames
// unread, the connection would be reset, and what is still on its way lost.
func givenUp(f *http2.Framer) {
	for {
		frame, err := f.ReadFrame()
		if _, reset := frame.(*http2.RSTStreamFrame); reset || err != nil {
			return
		}
	}
}

func respond(f *http2.Framer, id uint32, body string) {
	_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: headers(":status", "200"), EndHeaders: true})
	_ = f.WriteData(id, true, []byte(body))
}

// h2conn is an HTTP/2 client that sends any frames.
type h2conn struct {
	c       *testCase
	l       *line
	f       *http2.Framer
	reply   *http2.Framer // of the goroutine that reads, while another may write with f
	answers map[uint32]*answer
	resets  map[uint32]http2.ErrCode
	gone    *http2.GoAwayFrame
	err     error
	greeted bool // the server's settings came
}

// h2 opens a tunnel whose client offers h2 alone, and greets.
func (c *testCase) h2(host string) *h2conn {
	l, a := c.connect(host)
	c.is("CONNECT", a, 200)
	in, err := c.secure(l, &tls.Config{ServerName: strings.Split(host, ":")[0], NextProtos: []string{"h2"}})
	c.must(err)
	h := &h2conn{c: c, l: in, f: http2.NewFramer(in, in), reply: http2.NewFramer(in, nil), answers: map[uint32]*answer{},
		resets: map[uint32]http2.ErrCode{}}
	h.f.AllowIllegalWrites = true
	h.f.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	_, _ = io.WriteString(in, http2.ClientPreface)
	_ = h.f.WriteSettings()
	for !h.greeted && h.err == nil {
		h.read()
	}
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
	_ = h.f.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: headers(pairs...), EndHeaders: true,
		EndStream: end})
}

// request sends a whole request without a body.
func (h *h2conn) request(id uint32, method, authority, path string, pairs ...string) {
	h.send(id, true, append([]string{":method", method, ":scheme", "https", ":authority", authority, ":path", path},
		pairs...)...)
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
			h.greeted = true
			_ = h.reply.WriteSettingsAck()
		}
	case *http2.PingFrame:
		if !f.IsAck() {
			_ = h.reply.WritePing(true, f.Data)
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
			_ = h.reply.WriteWindowUpdate(0, n)
			_ = h.reply.WriteWindowUpdate(f.StreamID, n)
		}
	case *http2.RSTStreamFrame:
		h.resets[f.StreamID] = f.ErrCode
	case *http2.GoAwayFrame:
		h.gone = f
	}
}
