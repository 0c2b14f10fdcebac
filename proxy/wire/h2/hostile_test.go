package h2

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/proxy/wire"
)

// patience is as long as only a defect takes, on a busy machine too.
var patience = must.Patience(5 * time.Minute)

// unhurried makes the connections of a test take nothing for stalled: on a busy machine,
// a write to a client that reads, and the end of a stream, may take long.
func unhurried(t *testing.T) {
	t.Helper()
	before, shed := stallsAfter, shedTimeout
	stallsAfter, shedTimeout = patience, patience
	t.Cleanup(func() { stallsAfter, shedTimeout = before, shed })
}

// frames is a client that writes frames as it likes.
type frames struct {
	*http2.Framer
	conn    net.Conn
	encoder *hpack.Encoder
	block   bytes.Buffer
}

func newFrames(t *testing.T, opts wire.Options, h Handler) *frames {
	t.Helper()
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if conn, err := l.Accept(); err == nil {
			Serve(ctx, conn, opts, h)
		}
	}()
	conn := must.Get(net.Dial("tcp", l.Addr().String()))(t)
	t.Cleanup(func() { _ = conn.Close(); cancel(); _ = l.Close(); <-done })
	_ = conn.SetDeadline(time.Now().Add(patience))
	c := &frames{Framer: http2.NewFramer(conn, conn), conn: conn}
	c.encoder = hpack.NewEncoder(&c.block)
	c.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	_, _ = io.WriteString(conn, http2.ClientPreface)
	return c
}

func (c *frames) open(id uint32, end bool, fields ...string) {
	c.block.Reset()
	for i := 0; i+1 < len(fields); i += 2 {
		_ = c.encoder.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1]})
	}
	_ = c.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: c.block.Bytes(), EndStream: end,
		EndHeaders: true})
}

// await reads until a frame is what f waits for.
func (c *frames) await(t *testing.T, f func(http2.Frame) bool) {
	t.Helper()
	for {
		frame, err := c.ReadFrame()
		if err != nil {
			t.Fatalf("the connection ends with %v", err)
		}
		if g, ok := frame.(*http2.GoAwayFrame); ok {
			t.Fatalf("the connection ends with GOAWAY %v", g.ErrCode)
		}
		if f(frame) {
			return
		}
	}
}

func asks(method, path string) []string {
	return []string{":method", method, ":scheme", "https", ":authority", "a.example", ":path", path}
}

func status(code int, r *http.Request, body io.ReadCloser, length int64) *http.Response {
	return &http.Response{StatusCode: code, Header: http.Header{}, Body: body, ContentLength: length, Request: r}
}

// RFC 9113 section 6.9.2: a window may be made negative.
func TestANegativeWindowHarmsNobody(t *testing.T) {
	more := make(chan struct{})
	c := newFrames(t, wire.Options{}, handler(func(r *http.Request) *http.Response {
		out, in := io.Pipe()
		go func() {
			_, _ = io.WriteString(in, "0123456789")
			<-more
			_ = in.Close()
		}()
		return status(200, r, out, -1)
	}))
	_ = c.WriteSettings()
	c.open(1, true, asks("GET", "/")...)
	c.await(t, func(f http2.Frame) bool { d, ok := f.(*http2.DataFrame); return ok && len(d.Data()) == 10 })
	_ = c.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
	c.await(t, func(f http2.Frame) bool { s, ok := f.(*http2.SettingsFrame); return ok && s.IsAck() })
	close(more)
	c.await(t, func(f http2.Frame) bool { d, ok := f.(*http2.DataFrame); return ok && d.StreamEnded() })
	_ = c.WritePing(false, [8]byte{1})
	c.await(t, func(f http2.Frame) bool { _, ok := f.(*http2.PingFrame); return ok })
}

// What a client uploads and resets at once comes back to the connection's
// window.
func TestResetUploadsGiveTheWindowBack(t *testing.T) {
	c := newFrames(t, wire.Options{}, handler(func(r *http.Request) *http.Response {
		_, _ = io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{r.Body}, make([]byte, 32<<10))
		return status(200, r, http.NoBody, 0)
	}))
	_ = c.WriteSettings()
	window := int64(65535)
	id := uint32(1)
	for range 3 * connWindow / (32 << 10) {
		for window < 32<<10 { // it comes in large steps
			c.await(t, func(f http2.Frame) bool {
				u, ok := f.(*http2.WindowUpdateFrame)
				if ok && u.StreamID == 0 {
					window += int64(u.Increment)
				}
				return ok
			})
		}
		c.open(id, false, asks("POST", "/x")...)
		var burst bytes.Buffer
		w := http2.NewFramer(&burst, nil)
		_ = w.WriteData(id, false, make([]byte, 16<<10))
		_ = w.WriteData(id, false, make([]byte, 16<<10))
		_ = w.WriteRSTStream(id, http2.ErrCodeCancel)
		window -= 32 << 10
		_, _ = c.conn.Write(burst.Bytes())
		id += 2
	}
}

func TestAWindowThatStaysClosedEndsItsStreamWhateverElseHappens(t *testing.T) {
	ended := make(chan struct{})
	c := newFrames(t, wire.Options{Limits: wire.Limits{Stalled: 300 * time.Millisecond}},
		handler(func(r *http.Request) *http.Response {
			go func() { <-r.Context().Done(); close(ended) }()
			return status(200, r, io.NopCloser(strings.NewReader(strings.Repeat("x", 100_000))), -1)
		}))
	_ = c.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
	go func() {
		for {
			if _, err := c.ReadFrame(); err != nil {
				return
			}
		}
	}()
	c.open(1, true, asks("GET", "/")...)
	for range 200 { // another wake-up every tenth of a second
		_ = c.WriteWindowUpdate(0, 1)
		select {
		case <-ended:
			return
		case <-time.After(100 * time.Millisecond):
		}
	}
	t.Error("the stream is held for twenty seconds with a limit of 0.3")
}

func TestABodyThatStallsIsAnswered(t *testing.T) {
	for limits, length := range map[wire.Limits][]string{
		{Progress: 300 * time.Millisecond}: {"content-length", "5"},
		{Pause: 300 * time.Millisecond}:    nil,
	} {
		c := newFrames(t, wire.Options{Limits: limits}, handler(func(r *http.Request) *http.Response {
			if _, err := io.Copy(io.Discard, r.Body); err != wire.ErrBodyStalled || r.Context().Err() != nil {
				t.Errorf("the body ends with %v, its request with %v", err, r.Context().Err())
			}
			return status(408, r, http.NoBody, 0)
		}))
		_ = c.WriteSettings()
		c.open(1, false, append(asks("POST", "/"), length...)...)
		c.await(t, func(f http2.Frame) bool {
			m, ok := f.(*http2.MetaHeadersFrame)
			return ok && m.PseudoValue("status") == "408"
		})
	}
}

// Only streams that may be bidirectional may be silent for as long as they like.
func TestTheMediaTypeDecidesWhetherABodyMayBeSilent(t *testing.T) {
	limits := wire.Limits{Progress: 1, Pause: 2}
	for media, want := range map[string]time.Duration{
		"application/grpc": 0, "application/grpc+proto": 0, "application/connect+json": 0,
		"application/json": 2, "application/x-ndjson": 2, "": 2,
	} {
		r := &http.Request{ContentLength: -1, Header: http.Header{"Content-Type": {media}}}
		if got := paceOf(r, limits); got != want {
			t.Errorf("%q: %d, want %d", media, got, want)
		}
		if r.ContentLength = 5; paceOf(r, limits) != limits.Progress {
			t.Errorf("%q: its length says when it ends", media)
		}
	}
}

// Trailers that cross our reset cost the client nothing else.
func TestTrailersThatCrossAResetAreIgnored(t *testing.T) {
	slow := make(chan struct{})
	c := newFrames(t, wire.Options{}, handler(func(r *http.Request) *http.Response {
		if r.Method == "GET" {
			<-slow
		}
		return status(403, r, http.NoBody, 0)
	}))
	_ = c.WriteSettings()
	c.open(1, true, asks("GET", "/other")...)
	c.open(3, false, asks("POST", "/denied")...)
	c.await(t, func(f http2.Frame) bool { _, ok := f.(*http2.RSTStreamFrame); return ok })
	c.open(3, true, "x-trailer", "1")
	close(slow)
	c.await(t, func(f http2.Frame) bool { m, ok := f.(*http2.MetaHeadersFrame); return ok && m.StreamID == 1 })
}

// A server's first frame is SETTINGS, whatever happens meanwhile.
func TestADrainThatIsOverTheConnectionBeginsWithSettings(t *testing.T) {
	drain, stop := context.WithCancel(t.Context())
	stop()
	c := newFrames(t, wire.Options{Drain: drain},
		handler(func(r *http.Request) *http.Response { return status(200, r, http.NoBody, 0) }))
	_ = c.WriteSettings()
	frame, err := c.ReadFrame()
	if _, ok := frame.(*http2.SettingsFrame); !ok {
		t.Errorf("the first frame is %v, %v", frame, err)
	}
}

// A reset has no words: curl says "PROTOCOL_ERROR", and its user looks for a fault of the network.
func TestAMalformedHeadGetsItsResponse(t *testing.T) {
	c := newFrames(t, wire.Options{}, &echo{})
	_ = c.WriteSettings()
	id := uint32(1)
	for want, fields := range map[string][]string{
		"in lower case":            append(asks("GET", "/"), "X-Upper", "1"),
		"has a control character":  append(asks("GET", "/"), "x-line", "a\r\nb: c"),
		"a pseudo-header field is": append(asks("GET", "/"), ":path", "/again"),
		"HTTP/1.1's connections":   append(asks("GET", "/"), "connection", "close"),
		"TE is not":                append(asks("GET", "/"), "te", "gzip"),
		"has a blank":              asks("GET", "/a b"),
		"not a path":               asks("GET", "/%zz"),
		"not a token":              asks("G T", "/"),
		"not the tunnel's":         {":method", "GET", ":scheme", "http", ":authority", "a.example", ":path", "/"},
		"no :authority":            {":method", "GET", ":scheme", "https", ":path", "/"},
		"does not come":            append(asks("POST", "/"), "content-length", "5"),
	} {
		for _, whole := range []bool{true, false} {
			if !whole && want == "does not come" {
				continue
			}
			c.open(id, whole, fields...)
			status, body, code := "", "", http2.ErrCode(255)
			c.await(t, func(f http2.Frame) bool {
				switch f := f.(type) {
				case *http2.MetaHeadersFrame:
					status = f.PseudoValue("status")
				case *http2.DataFrame:
					body += string(f.Data())
				case *http2.RSTStreamFrame:
					code = f.ErrCode
				}
				return code != 255
			})
			if ends := map[bool]http2.ErrCode{true: http2.ErrCodeProtocol, false: http2.ErrCodeNo}[whole]; status != "400" ||
				!strings.Contains(body, want) || code != ends {
				t.Errorf("%q, whole %t: %s %q, then %v, want %q and %v", fields, whole, status, body, code, want, ends)
			}
			id += 2
		}
	}
	c.open(id, true, asks("GET", "/")...)
	c.served(t, []uint32{id})
}
