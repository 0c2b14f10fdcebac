package proxy

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/ca"
)

// spoken is an origin that says what a test has it say, and counts its
// connections.
type spoken struct {
	conns atomic.Int64
	gone  chan struct{} // gets one for each connection that ended
}

// speak gives a world whose api.good.example is served by say, once for each
// request: r is the connection's, path the request's.
func speak(t *testing.T, set func(*Config), say func(conn net.Conn, path string)) (*world, *spoken) {
	t.Helper()
	authority, err := ca.NewSession(ca.Options{Session: "spoken"})
	must(t, err)
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{MinVersion: tls.VersionTLS12,
		GetCertificate: func(h *tls.ClientHelloInfo) (*tls.Certificate, error) { return authority.Leaf(h.ServerName) }})
	must(t, err)
	s := &spoken{gone: make(chan struct{}, 64)}
	var group sync.WaitGroup
	group.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			s.conns.Add(1)
			group.Go(func() {
				defer func() { _ = conn.Close(); s.gone <- struct{}{} }()
				br := bufio.NewReader(conn)
				for {
					r, err := http.ReadRequest(br)
					if err != nil {
						return
					}
					_, _ = io.Copy(io.Discard, r.Body)
					say(conn, r.URL.Path)
				}
			})
		}
	})
	t.Cleanup(group.Wait)
	t.Cleanup(func() { _ = l.Close() })
	w := newWorldWith(t, false, func(c *Config) {
		c.Upstream.Roots.AddCert(authority.Root())
		c.Upstream.Resolve["api.good.example:443"] = netip.MustParseAddrPort(l.Addr().String())
		set(c)
	}, hello)
	return w, s
}

// ends waits until a connection has ended.
func (s *spoken) ends(t *testing.T) {
	t.Helper()
	select {
	case <-s.gone:
	case <-time.After(time.Minute):
		t.Fatal("the upstream connection is still open")
	}
}

func plainly(*Config) {}

func TestRequestsShareAConnectionWhileItIsAlive(t *testing.T) {
	w, s := speak(t, plainly, func(conn net.Conn, path string) {
		_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
		if strings.HasSuffix(path, "/last") {
			_ = conn.Close()
		}
	})
	for _, step := range []struct {
		path  string
		conns int64
	}{{"/v1/items", 1}, {"/v1/items/1", 1}, {"/v1/items/last", 1}, {"/v1/items/2", 2}, {"/v1/items", 2}} {
		if res, body := w.do("GET", "https://api.good.example"+step.path, ""); res.StatusCode != 200 || body != "ok" {
			t.Fatalf("%s: got %d %q", step.path, res.StatusCode, body)
		}
		if step.path == "/v1/items/last" {
			s.ends(t)
		}
		if got := s.conns.Load(); got != step.conns {
			t.Errorf("after %s there were %d connections, want %d", step.path, got, step.conns)
		}
	}
}

// Connection is a field of one hop (RFC 9110 section 7.6.1): a host that closes
// its connection after each response ends neither the client's nor the streams
// beside it.
func TestAnUpstreamThatClosesEndsNoConnectionOfItsClient(t *testing.T) {
	for _, c := range []struct{ name, response string }{
		{"with a length", "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok"},
		{"up to the end", "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nok"},
		{"of HTTP/1.0", "HTTP/1.0 200 OK\r\n\r\nok"},
	} {
		t.Run(c.name, func(t *testing.T) {
			goOn := make(chan struct{})
			w, _ := speak(t, plainly, func(conn net.Conn, path string) {
				if strings.HasSuffix(path, "/long") {
					_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nlong")
					<-goOn
					_, _ = io.WriteString(conn, " tail")
					return
				}
				_, _ = io.WriteString(conn, c.response)
				_ = conn.Close()
			})
			client := w.h2client()
			defer client.CloseIdleConnections()
			var conns []net.Conn
			ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) { conns = append(conns, info.Conn) }})
			get := func(path string) *http.Response {
				t.Helper()
				r, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://api.good.example"+path, http.NoBody)
				must(t, err)
				res, err := client.Do(r)
				must(t, err)
				return res
			}
			long := get("/v1/items/long")
			defer long.Body.Close()
			for range 3 {
				res := get("/v1/items")
				if body, err := io.ReadAll(res.Body); res.StatusCode != 200 || string(body) != "ok" || err != nil {
					t.Errorf("got %d %q, %v", res.StatusCode, body, err)
				}
				_ = res.Body.Close()
			}
			close(goOn)
			if body, err := io.ReadAll(long.Body); string(body) != "long tail" || err != nil {
				t.Errorf("the stream beside them got %q, %v", body, err)
			}
			if slices.ContainsFunc(conns, func(c net.Conn) bool { return c != conns[0] }) {
				t.Error("the client needed another connection")
			}

			conn := w.tunnel("api.good.example")
			defer conn.Close()
			br := bufio.NewReader(conn)
			for range 3 {
				_, err := io.WriteString(conn, "GET /v1/items HTTP/1.1\r\nHost: api.good.example\r\n\r\n")
				must(t, err)
				res, err := http.ReadResponse(br, nil)
				must(t, err)
				if body, err := io.ReadAll(res.Body); string(body) != "ok" || err != nil || res.Close {
					t.Errorf("over HTTP/1.1: got %q, %v, Connection: close is %t", body, err, res.Close)
				}
			}
		})
	}
}

func TestBytesBehindAnAnswerAreNobodysAnswer(t *testing.T) {
	w, s := speak(t, plainly, func(conn net.Conn, _ string) {
		_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil")
	})
	for range 3 {
		if res, body := w.do("GET", "https://api.good.example/v1/items", ""); res.StatusCode != 200 || body != "ok" {
			t.Errorf("got %d %q", res.StatusCode, body)
		}
	}
	if got := s.conns.Load(); got != 3 {
		t.Errorf("%d connections, want one for each answer", got)
	}
}

func TestInterimAnswersAreDroppedUpToABound(t *testing.T) {
	for n, status := range map[int]int{0: 200, 3: 200, 40: 502} {
		w, _ := speak(t, plainly, func(conn net.Conn, _ string) {
			_, _ = io.WriteString(conn, strings.Repeat("HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n", n)+"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
		})
		if res, _ := w.do("GET", "https://api.good.example/v1/items/1", ""); res.StatusCode != status || res.Header.Get("Link") != "" {
			t.Errorf("after %d interim answers: got %d %v, want %d", n, res.StatusCode, res.Header, status)
		}
	}
}

func TestAnAnswersHeadIsBounded(t *testing.T) {
	w, _ := speak(t, plainly, func(conn net.Conn, _ string) {
		_, _ = fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nX-Long: %s\r\nContent-Length: 2\r\n\r\nok", strings.Repeat("x", 256<<10))
	})
	if res, _ := w.do("GET", "https://api.good.example/v1/items/1", ""); res.StatusCode != 502 {
		t.Errorf("got %d, want 502", res.StatusCode)
	}
}

func TestAHeadThatDoesNotComeIsATimeout(t *testing.T) {
	w, s := speak(t, func(c *Config) { c.Upstream.ResponseHeader = 50 * time.Millisecond }, func(conn net.Conn, _ string) {
		_, _ = io.WriteString(conn, "HTTP/1.1 200")
		_, _ = io.Copy(io.Discard, conn) // until the plane hangs up
	})
	if res, _ := w.do("GET", "https://api.good.example/v1/items/1", ""); res.StatusCode != 504 {
		t.Errorf("got %d, want 504", res.StatusCode)
	}
	s.ends(t)
}

func TestABodyMayTakeLongerThanItsHead(t *testing.T) {
	// On a busy machine a head may miss the first of these limits.
	for limit := 100 * time.Millisecond; limit < time.Minute; limit *= 3 {
		w, _ := speak(t, func(c *Config) { c.Upstream.ResponseHeader = limit }, func(conn net.Conn, _ string) {
			_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\no")
			time.Sleep(2 * limit)
			_, _ = io.WriteString(conn, "k")
		})
		res, body := w.do("GET", "https://api.good.example/v1/items/1", "")
		if res.StatusCode == http.StatusGatewayTimeout {
			continue
		}
		if res.StatusCode != 200 || body != "ok" {
			t.Errorf("got %d %q", res.StatusCode, body)
		}
		return
	}
	t.Error("no head came in time")
}

func TestAClientThatLeavesTakesItsUpstreamConnectionAlong(t *testing.T) {
	w, s := speak(t, plainly, func(conn net.Conn, _ string) {
		_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nsome")
	})
	ctx, cancel := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://api.good.example/v1/items/1", nil)
	must(t, err)
	res, err := w.client.Do(req)
	must(t, err)
	defer res.Body.Close()
	_, err = io.ReadFull(res.Body, make([]byte, 4))
	must(t, err)
	cancel()
	s.ends(t)
}

func TestDrainedPlanesKeepNoConnection(t *testing.T) {
	w, s := speak(t, plainly, func(conn net.Conn, _ string) {
		_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
	})
	w.do("GET", "https://api.good.example/v1/items", "")
	w.plane.Drain(t.Context())
	s.ends(t)
}

func TestAnswersWithoutABodyGiveTheirConnectionBack(t *testing.T) {
	w, s := speak(t, plainly, func(conn net.Conn, _ string) {
		_, _ = io.WriteString(conn, "HTTP/1.1 204 No Content\r\n\r\n")
	})
	for range 3 {
		if res, _ := w.do("GET", "https://api.good.example/v1/items/1", ""); res.StatusCode != 204 {
			t.Errorf("got %d", res.StatusCode)
		}
	}
	if got := s.conns.Load(); got != 1 {
		t.Errorf("%d connections, want 1", got)
	}
}

func TestRequestsWithABodyShareAConnection(t *testing.T) {
	w, s := speak(t, plainly, func(conn net.Conn, _ string) {
		_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
	})
	for _, method := range []string{"POST", "GET", "POST", "POST"} {
		if res, body := w.do(method, "https://api.good.example/v1/items", map[string]string{"POST": "a body"}[method]); res.StatusCode != 200 || body != "ok" {
			t.Errorf("%s: got %d %q", method, res.StatusCode, body)
		}
	}
	if got := s.conns.Load(); got != 1 {
		t.Errorf("%d connections, want 1", got)
	}
}

// The response begins before the request has ended, and answers each part.
func TestAResponseStreamsBesideItsRequest(t *testing.T) {
	set := scripted(t, "http/1.1", func(_ int, c *tls.Conn) {
		r, err := http.ReadRequest(bufio.NewReader(c))
		if err != nil {
			return
		}
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
		for part := make([]byte, 64); ; {
			n, err := r.Body.Read(part)
			if n > 0 {
				_, _ = fmt.Fprintf(c, "%x\r\n%s\r\n", n, part[:n])
			}
			if err != nil {
				_, _ = io.WriteString(c, "0\r\n\r\n")
				return
			}
		}
	})
	w := newWorldWith(t, false, set, nil)
	in, out := io.Pipe()
	req, err := http.NewRequestWithContext(t.Context(), "POST", "https://api.good.example/v1/items", in)
	must(t, err)
	go func() { _, _ = io.WriteString(out, "one") }()
	res, err := w.client.Do(req)
	must(t, err)
	defer res.Body.Close()
	for _, part := range []string{"one", "two", "three"} {
		got := make([]byte, len(part))
		if _, err := io.ReadFull(res.Body, got); err != nil || string(got) != part {
			t.Fatalf("read %q, %v, want %q", got, err, part)
		}
		if next := map[string]string{"one": "two", "two": "three"}[part]; next != "" {
			_, _ = io.WriteString(out, next)
		}
	}
	_ = out.Close()
	if rest, err := io.ReadAll(res.Body); err != nil || len(rest) > 0 {
		t.Errorf("behind it come %q, %v", rest, err)
	}
}

// A host that refuses a body and closes is understood, and not used again.
func TestAnEarlyRefusalOfABodyArrives(t *testing.T) {
	set := scripted(t, "http/1.1", func(_ int, c *tls.Conn) {
		if _, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
			_, _ = io.WriteString(c, "HTTP/1.1 413 Content Too Large\r\nContent-Length: 3\r\n\r\nbig")
			_ = c.CloseWrite()
			_, _ = io.Copy(io.Discard, c)
		}
	})
	w := newWorldWith(t, false, set, nil)
	if res, body := w.do("POST", "https://api.good.example/v1/items", strings.Repeat("0123456789abcdef", 1<<16)); res.StatusCode != 413 || body != "big" {
		t.Errorf("got %d %q", res.StatusCode, body)
	}
}

// The time for a response's head begins when the request has ended.
func TestAHeadThatDoesNotComeAfterABodyIsATimeout(t *testing.T) {
	w, s := speak(t, func(c *Config) { c.Upstream.ResponseHeader = 50 * time.Millisecond }, func(conn net.Conn, _ string) {
		_, _ = io.Copy(io.Discard, conn) // until the plane hangs up
	})
	res, body := w.do("POST", "https://api.good.example/v1/items", "a body")
	if _, why := reason(t, body); res.StatusCode != 504 || why != reasonTimeout {
		t.Errorf("got %d %s", res.StatusCode, body)
	}
	s.ends(t)
}

func TestAClientThatBreaksOffItsBodyTakesItsUpstreamConnectionAlong(t *testing.T) {
	w, s := speak(t, plainly, func(net.Conn, string) {})
	conn := w.tunnel("api.good.example")
	_, err := io.WriteString(conn, "POST /v1/items HTTP/1.1\r\nHost: api.good.example\r\nContent-Length: 1000\r\n\r\nhalf")
	must(t, err)
	w.eventually(func() bool { return s.conns.Load() == 1 })
	_ = conn.Close()
	s.ends(t)
}

// A response that is complete before its request leaves half a request on the
// connection, which is no other request's.
func TestAnUploadThatIsNotOverKeepsItsConnection(t *testing.T) {
	behind := make(chan string, 1)
	set := scripted(t, "http/1.1", func(n int, c *tls.Conn) {
		br := bufio.NewReader(c)
		if _, err := http.ReadRequest(br); err != nil {
			return
		}
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nearly")
		if n == 1 {
			rest, _ := io.ReadAll(br)
			behind <- string(rest)
		}
	})
	w := newWorldWith(t, false, set, nil)
	conn := w.tunnel("api.good.example")
	defer conn.Close()
	_, err := io.WriteString(conn, "POST /v1/items HTTP/1.1\r\nHost: api.good.example\r\nContent-Length: 1000\r\n\r\nhalf")
	must(t, err)
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	must(t, err)
	if body, err := io.ReadAll(res.Body); res.StatusCode != 200 || string(body) != "early" {
		t.Fatalf("%d %q, %v", res.StatusCode, body, err)
	}
	if res, body := w.do("GET", "https://api.good.example/v1/items", ""); res.StatusCode != 200 || body != "early" {
		t.Errorf("the next one gets %d %q", res.StatusCode, body)
	}
	select {
	case rest := <-behind:
		if rest != "half" {
			t.Errorf("behind the first head came %q", rest)
		}
	case <-time.After(time.Minute):
		t.Error("the connection is kept")
	}
}

func TestAConnectionKeepsNoHugeBuffer(t *testing.T) {
	for length, conns := range map[int]int64{20_000: 1, 100_000: 3} {
		w, s := speak(t, plainly, func(conn net.Conn, _ string) {
			_, _ = fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nX-Long: %s\r\nContent-Length: 2\r\n\r\nok", strings.Repeat("0123456789", length/10))
		})
		for range 3 {
			if res, body := w.do("GET", "https://api.good.example/v1/items", ""); res.StatusCode != 200 || body != "ok" {
				t.Fatalf("%d %q", res.StatusCode, body)
			}
		}
		if got := s.conns.Load(); got != conns {
			t.Errorf("with heads of %d bytes: %d connections, want %d", length, got, conns)
		}
	}
}
