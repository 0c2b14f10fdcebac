package upstream

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
)

const okResponse = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

// always returns a function that responds to each request with text.
func always(text string) func(int64, *tls.Conn) {
	return respond(func(*http.Request) string { return text })
}

func TestRequestsShareAConnectionWhileItIsAlive(t *testing.T) {
	o := newOrigin(t, "http/1.1", func(_ int64, c *tls.Conn) {
		for br := bufio.NewReader(c); ; {
			r, err := http.ReadRequest(br)
			if err != nil {
				return
			}
			_, _ = io.WriteString(c, okResponse)
			if r.URL.Path == "/last" {
				return
			}
		}
	})
	u := o.client(t)
	for _, step := range []struct {
		path  string
		conns int64
	}{{"/", 1}, {"/1", 1}, {"/last", 1}, {"/2", 2}, {"/", 2}} {
		status, body, err := roundTrip(u, newRequest(t, "GET", step.path, nil), Route{})
		if status != 200 || body != "ok" {
			t.Fatalf("%s: got %d %q, %v", step.path, status, body, err)
		}
		if step.path == "/last" {
			o.awaitEnd(t)
		}
		if got := o.conns.Load(); got != step.conns {
			t.Errorf("after %s there were %d connections, want %d", step.path, got, step.conns)
		}
	}
}

func TestTheNextRequestReusesAConnectionAfter(t *testing.T) {
	for name, c := range map[string]struct {
		response string
		methods  []string
		conns    int64
	}{
		"a response without a body": {"HTTP/1.1 204 No Content\r\n\r\n", []string{"GET", "GET", "GET"}, 1},
		"requests with a body":      {okResponse, []string{"POST", "GET", "POST", "POST"}, 1},
		"a large head": {
			"HTTP/1.1 200 OK\r\nX-Long: " + strings.Repeat("0123456789", 2000) + "\r\nContent-Length: 2\r\n\r\nok",
			[]string{"GET", "GET", "GET"}, 1},
		"no head of 100 KB, whose buffer it would keep": {
			"HTTP/1.1 200 OK\r\nX-Long: " + strings.Repeat("0123456789", 10_000) + "\r\nContent-Length: 2\r\n\r\nok",
			[]string{"GET", "GET", "GET"}, 3},
		"no response with bytes behind it": {okResponse + "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil",
			[]string{"GET", "GET", "GET"}, 3},
		"no response that ends the connection": {"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok",
			[]string{"GET", "GET"}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOrigin(t, "http/1.1", always(c.response))
			// That a request has left is known a moment after its response has come, or later on a busy machine.
			u := o.client(t, func(opts *Options) { opts.UploadGrace = patience })
			for _, method := range c.methods {
				var from io.Reader
				if method == http.MethodPost {
					from = strings.NewReader("a body")
				}
				status, body, err := roundTrip(u, newRequest(t, method, "/", from), Route{})
				if err != nil || status == 200 && body != "ok" {
					t.Fatalf("%s: got %d %q, %v", method, status, body, err)
				}
			}
			if got := o.conns.Load(); got != c.conns {
				t.Errorf("%d connections, want %d", got, c.conns)
			}
		})
	}
}

// A response that is complete before its request leaves half a request on the
// connection, which is no other request's.
func TestAnUploadThatIsNotOverKeepsItsConnection(t *testing.T) {
	behind := make(chan string, 1)
	o := newOrigin(t, "http/1.1", func(n int64, c *tls.Conn) {
		br := bufio.NewReader(c)
		if _, err := http.ReadRequest(br); err != nil {
			return
		}
		_, _ = io.WriteString(c, okResponse)
		if n == 1 {
			rest, _ := io.ReadAll(br)
			behind <- string(rest)
		}
	})
	u := o.client(t)
	in, out := io.Pipe()
	go func() { _, _ = io.WriteString(out, "half") }()
	r := newRequest(t, "POST", "/", in)
	r.ContentLength = 1000
	for _, r := range []*http.Request{r, newRequest(t, "GET", "/", nil)} {
		if status, body, err := roundTrip(u, r, Route{}); status != 200 || body != "ok" {
			t.Fatalf("%s: got %d %q, %v", r.Method, status, body, err)
		}
	}
	_ = out.Close()
	u.Wait()
	if rest := <-behind; rest != "half" {
		t.Errorf("behind the first head came %q", rest)
	}
}

func TestInterimResponsesAreDroppedUpToABound(t *testing.T) {
	// A host may send one each few seconds while it works. It ends with what all heads together may have.
	for n, ok := range map[int]bool{0: true, 3: true, 300: true, 7000: false} {
		text := strings.Repeat("HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n", n) + okResponse
		u := newOrigin(t, "http/1.1", always(text)).client(t)
		res, err := u.RoundTrip(newRequest(t, "GET", "/", nil), Route{})
		switch {
		case !ok:
			if errorKind(t, err) != HeadTooLarge {
				t.Errorf("after %d interim responses: %v", n, err)
			}
		case err != nil || res.StatusCode != 200 || res.Header.Get("Link") != "":
			t.Errorf("after %d interim responses: %+v, %v", n, res, err)
		default:
			_ = res.Body.Close()
		}
	}
}

// Over TLS the record layer shows what a host sent unasked; in clear nothing but
// the socket does.
func TestWhatComesUnaskedInClearIsNoResponse(t *testing.T) {
	for name, unasked := range map[string]string{
		"a response": "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil",
		"a byte":     "x",
		"the end":    "",
	} {
		t.Run(name, func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			must.Do(t, err)
			defer l.Close()
			next, did := make(chan struct{}), make(chan struct{})
			go func() {
				for n := 0; ; n++ {
					c, err := l.Accept()
					if err != nil {
						return
					}
					go func() {
						defer c.Close()
						for br := bufio.NewReader(c); ; {
							if _, err := http.ReadRequest(br); err != nil {
								return
							}
							_, _ = io.WriteString(c, okResponse)
							if n > 0 {
								continue
							}
							<-next
							_, _ = io.WriteString(c, unasked)
							if unasked == "" {
								_ = c.Close()
							}
							close(did)
							_, _ = io.Copy(io.Discard, br) // nothing more comes on it
							return
						}
					}()
				}
			}()
			at := netip.MustParseAddrPort(l.Addr().String())
			u, err := New(Options{Resolve: map[string]netip.AddrPort{"example.com:80": at}})
			must.Do(t, err)
			defer u.Close()
			for i := range 2 {
				status, body, err := roundTrip(u, clearRequest(t.Context(), nil), Route{Idempotent: true})
				if status != 200 || body != "ok" {
					t.Errorf("response %d is %d %q, %v", i+1, status, body, err)
				}
				if i == 0 {
					close(next)
					<-did
				}
			}
		})
	}
}

// coalesced holds back what is written until it is flushed in one piece.
type coalesced struct {
	net.Conn
	held bytes.Buffer
	hold bool
}

func (c *coalesced) Write(p []byte) (int, error) {
	if c.hold {
		return c.held.Write(p)
	}
	return c.Conn.Write(p)
}

func (c *coalesced) flush() {
	c.hold = false
	_, _ = c.Conn.Write(c.held.Bytes())
	c.held.Reset()
}

// A TLS record behind a response is in crypto/tls, where neither the socket nor
// the reader of the head shows it.
func TestARecordBehindAResponseIsNoResponse(t *testing.T) {
	o := newOrigin(t, "http/1.1", nil)
	cfg := o.config
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must.Do(t, err)
	defer l.Close()
	var conns atomic.Int64
	go func() {
		for {
			raw, err := l.Accept()
			if err != nil {
				return
			}
			conns.Add(1)
			go func() {
				defer raw.Close()
				held := &coalesced{Conn: raw}
				secure := tls.Server(held, cfg)
				for br := bufio.NewReader(secure); ; {
					if _, err := http.ReadRequest(br); err != nil {
						return
					}
					held.hold = true
					_, _ = io.WriteString(secure, okResponse)
					_, _ = io.WriteString(secure, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil")
					held.flush()
				}
			}()
		}
	}()
	u := o.client(t, func(opts *Options) {
		opts.Resolve = map[string]netip.AddrPort{originHost: netip.MustParseAddrPort(l.Addr().String())}
	})
	for n := range int64(3) {
		if status, body, err := roundTrip(u, newRequest(t, "GET", "/", nil), Route{}); status != 200 || body != "ok" {
			t.Errorf("got %d %q, %v", status, body, err)
		}
		if got := conns.Load(); got != n+1 {
			t.Errorf("after %d responses there were %d connections", n+1, got)
		}
	}
}

func TestACanceledRequestEndsItsConnection(t *testing.T) {
	o := newOrigin(t, "http/1.1", always("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nsome"))
	u := o.client(t)
	ctx, cancel := context.WithCancel(t.Context())
	res, err := u.RoundTrip(newRequest(t, "GET", "/", nil).WithContext(ctx), Route{})
	must.Do(t, err)
	defer res.Body.Close()
	_, err = io.ReadFull(res.Body, make([]byte, 4))
	must.Do(t, err)
	cancel()
	if rest, err := io.ReadAll(res.Body); err == nil {
		t.Errorf("the body ends with %q", rest)
	}
	o.awaitEnd(t)
}

func TestACloseEndsIdleConnections(t *testing.T) {
	o := newOrigin(t, "http/1.1", always(okResponse))
	u := o.client(t)
	if status, _, err := roundTrip(u, newRequest(t, "GET", "/", nil), Route{}); status != 200 {
		t.Fatal(err)
	}
	u.Close()
	o.awaitEnd(t)
	// What is sent all the same has a connection of its own.
	if status, _, err := roundTrip(u, newRequest(t, "GET", "/", nil), Route{}); status != 200 {
		t.Fatal(err)
	}
	o.awaitEnd(t)
}

// For want of descriptors, the connection that has been idle for longest is closed, whatever its credential.
func TestTheOldestIdleConnectionIsClosed(t *testing.T) {
	o := newOrigin(t, "http/1.1", always(okResponse))
	u := o.client(t)
	if u.CloseOldestIdle() {
		t.Error("without a connection, one was closed")
	}
	a, b := u.Key("a"), u.Key("b")
	u.Keep(a, b)
	for _, step := range []struct {
		key   Key
		conns int64
	}{{a, 1}, {b, 2}, {a, 2}, {b, 3}} { // a is used last, so that b is the oldest
		if step.conns == 3 && !u.CloseOldestIdle() {
			t.Fatal("no connection was closed")
		}
		status, _, err := roundTrip(u, newRequest(t, "GET", "/", nil), Route{Key: step.key})
		if status != 200 || o.conns.Load() != step.conns {
			t.Fatalf("%v; there were %d connections, want %d", err, o.conns.Load(), step.conns)
		}
	}
	closed := 0
	for range 3 {
		if u.CloseOldestIdle() {
			closed++
		}
	}
	if closed != 2 {
		t.Errorf("of two idle connections, %d were closed", closed)
	}
}
