package proxy

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/ALRubinger/aileron/ca"
	"github.com/ALRubinger/aileron/proxy/scrub"
)

// scripted leads every host to a TLS origin whose connections f serves, the
// n-th as it likes.
func scripted(t testing.TB, alpn string, f func(n int, c *tls.Conn)) func(*Config) {
	t.Helper()
	authority, err := ca.NewSession(ca.Options{Session: "origin"})
	must(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for n := 1; ; n++ {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				s := tls.Server(c, &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{alpn},
					GetCertificate: func(h *tls.ClientHelloInfo) (*tls.Certificate, error) {
						return authority.Leaf(h.ServerName)
					}})
				defer s.Close()
				if s.Handshake() == nil {
					f(n, s)
				}
			}()
		}
	}()
	return func(cfg *Config) {
		cfg.Upstream.Roots = x509.NewCertPool()
		cfg.Upstream.Roots.AddCert(authority.Root())
		for name := range cfg.Upstream.Resolve {
			if strings.HasSuffix(name, ":443") {
				cfg.Upstream.Resolve[name] = netip.MustParseAddrPort(l.Addr().String())
			}
		}
	}
}

// h2Heads reads an HTTP/2 connection's requests and calls f with their streams,
// until f returns false.
func h2Heads(c net.Conn, f func(fr *http2.Framer, stream uint32) (more bool)) {
	if _, err := io.ReadFull(c, make([]byte, len(http2.ClientPreface))); err != nil {
		return
	}
	fr := http2.NewFramer(c, c)
	fr.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	_ = fr.WriteSettings()
	for {
		frame, err := fr.ReadFrame()
		if err != nil {
			return
		}
		switch frame := frame.(type) {
		case *http2.SettingsFrame:
			if !frame.IsAck() {
				_ = fr.WriteSettingsAck()
			}
		case *http2.MetaHeadersFrame:
			if !f(fr, frame.StreamID) {
				return
			}
		}
	}
}

// net/http repeats these by itself, over HTTP/2 for as long as it is let.
func TestAnOriginThatTakesNothingGetsARequestOnce(t *testing.T) {
	for name, answer := range map[string]func(fr *http2.Framer, stream uint32) bool{
		"GOAWAY before the stream": func(fr *http2.Framer, _ uint32) bool {
			_ = fr.WriteGoAway(0, http2.ErrCodeNo,
				nil)
			return false
		},
		"REFUSED_STREAM": func(fr *http2.Framer, stream uint32) bool {
			_ = fr.WriteRSTStream(stream, http2.ErrCodeRefusedStream)
			return true
		},
	} {
		for _, method := range []string{"GET", "POST"} {
			t.Run(name+"/"+method, func(t *testing.T) {
				var heads atomic.Int32
				set := scripted(t, "h2", func(_ int, c *tls.Conn) {
					h2Heads(c, func(fr *http2.Framer, stream uint32) bool { heads.Add(1); return answer(fr, stream) })
					_ = c.CloseWrite() // and reads what comes: else the kernel may reset the connection
					_, _ = io.Copy(io.Discard, c.NetConn())
				})
				w := newWorldWith(t, true, set, nil)
				w.client = w.h2client()
				ctx, cancel := context.WithTimeout(t.Context(), testPatience)
				defer cancel()
				host := map[string]string{"GET": "q.good.example", "POST": "api.good.example"}[method]
				r, err := http.NewRequestWithContext(ctx, method, "https://"+host+"/v1/items", http.NoBody)
				must(t, err)
				res, err := w.client.Do(r)
				must(t, err)
				body, _ := io.ReadAll(res.Body)
				_ = res.Body.Close()
				if _, why := reason(t, string(body)); res.StatusCode != 502 || why != ReasonUpstream || heads.Load() != 1 {
					t.Errorf("%d %s; the origin was asked %d times", res.StatusCode, body, heads.Load())
				}
			})
		}
	}
}

// It was not the client's body that broke.
func TestAnUpstreamThatDiesUnderABodyIsNamedAsThat(t *testing.T) {
	set := scripted(t, "h2", func(_ int, c *tls.Conn) {
		h2Heads(c, func(*http2.Framer, uint32) bool { return false })
		_ = c.CloseWrite() // and reads what comes: else the kernel may reset the connection
		_, _ = io.Copy(io.Discard, c.NetConn())
	})
	w := newWorldWith(t, true, set, nil)
	w.client = w.h2client()
	res, body := w.do("POST", "https://api.good.example/v1/items", strings.Repeat("x", 1<<10))
	if _, why := reason(t, body); res.StatusCode != 502 || why != ReasonUpstreamEnd {
		t.Errorf("%d %s", res.StatusCode, body)
	}
}

func TestATruncatedCleartextResponseIsNotTakenForComplete(t *testing.T) {
	w := newWorld(t, func(rw http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(rw, "half of the answer")
		rw.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	})
	conn, err := net.Dial("tcp", w.addr)
	must(t, err)
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(testPatience))
	_, err = fmt.Fprintf(conn,
		"GET http://plain.good.example/ HTTP/1.1\r\nHost: plain.good.example\r\nProxy-Authorization: Bearer %s\r\n\r\n",
		testToken)
	must(t, err)
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	must(t, err)
	if body, err := io.ReadAll(res.Body); err == nil {
		t.Errorf("the client takes %q for the whole", body)
	}
}

func TestASecretBoundDuringAResponseIsRedactedFromIt(t *testing.T) {
	const fresh = "S2-a-fresh-secret-0123456789-zyxwvut"
	gate := make(chan struct{})
	w := newWorld(t, func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(rw, "data: first\n\n")
		rw.(http.Flusher).Flush()
		<-gate
		_, _ = fmt.Fprintf(rw, "data: a user signed in with %s\n\n", fresh)
	})
	res, err := w.client.Get("https://api.good.example/v1/echo")
	must(t, err)
	defer res.Body.Close()
	_, err = io.ReadFull(res.Body, make([]byte, len("data: first\n\n")))
	must(t, err)
	g := w.plane.grants.Load()
	w.plane.SetGrants(&Grants{Index: g.Index, Bound: g.Bound,
		Scrub: scrub.NewSet([]scrub.Credential{{Secret: []byte(testSecret)}, {Secret: []byte(fresh)}})})
	close(gate)
	body, err := io.ReadAll(res.Body)
	if want := "data: a user signed in with " + strings.Repeat("*", len(fresh)) + "\n\n"; err != nil ||
		string(body) != want {
		t.Errorf("the box reads %q, %v", body, err)
	}
}

// Whatever becomes of its grants, an answer under way stays searched.
func TestARevokedSecretIsRedactedFromOpenResponses(t *testing.T) {
	gate := make(chan struct{})
	w := newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(rw, "data: first\n\n")
		rw.(http.Flusher).Flush()
		<-gate
		_, _ = io.WriteString(rw, "data: "+r.Header.Get("Authorization")+"\n\n")
	})
	res, err := w.client.Get("https://api.good.example/v1/echo")
	must(t, err)
	defer res.Body.Close()
	w.plane.SetGrants(&Grants{Index: w.plane.grants.Load().Index})
	close(gate)
	if body, err := io.ReadAll(res.Body); err != nil || strings.Contains(string(body), testSecret) {
		t.Errorf("the box reads %q, %v", body, err)
	}
}

func TestNothingPassesThatCannotBeRecorded(t *testing.T) {
	w := newWorldWith(t, false, func(c *Config) { c.Passthrough = true }, hello)
	w.plane.cfg.Audit = brokenRecorder{}
	res, body := w.do("GET", "https://other.example/", "")
	if res.StatusCode != 503 || !strings.Contains(body, string(ReasonAudit)) || len(w.requests()) != 0 {
		t.Errorf("got %d %s, %d requests left", res.StatusCode, body, len(w.requests()))
	}
}

func TestFieldsWithASpaceInTheirNameAreDropped(t *testing.T) {
	set := scripted(t, "http/1.1", func(_ int, c *tls.Conn) {
		if _, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nSet-Cookie : sid=1\r\nAlt-Svc : h3=\":443\"\r\nFoo bar: "+
				"x\r\nContent-Length: 5\r\n\r\nhello")
		}
	})
	w := newWorldWith(t, false, set, nil)
	for _, client := range []*http.Client{w.client, w.h2client()} {
		w.client = client
		res, body := w.do("GET", "https://api.good.example/v1/items", "")
		for name := range res.Header {
			if strings.Contains(name, " ") {
				t.Errorf("%s: the field %q arrives", res.Proto, name)
			}
		}
		if res.StatusCode != 200 || body != "hello" {
			t.Errorf("%s: %d %q", res.Proto, res.StatusCode, body)
		}
	}
}

func TestAnInvalidStatusIsRejected(t *testing.T) {
	for _, status := range []string{"000", "099", "600", "999"} {
		set := scripted(t, "http/1.1", func(_ int, c *tls.Conn) {
			if _, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
				_, _ = fmt.Fprintf(c, "HTTP/1.1 %s OK\r\nContent-Length: 5\r\n\r\nhello", status)
			}
		})
		w := newWorldWith(t, false, set, nil)
		res, body := w.do("GET", "https://api.good.example/v1/items", "")
		if _, why := reason(t, body); res.StatusCode != 502 || why != ReasonUpstream {
			t.Errorf("%s: %d %s", status, res.StatusCode, body)
		}
	}
}

func TestAnUploadThatTheUpstreamDoesNotTakeEnds(t *testing.T) {
	for _, alpn := range []string{"http/1.1", "h2"} {
		hold := make(chan struct{})
		set := scripted(t, alpn, func(_ int, c *tls.Conn) {
			if alpn == "h2" {
				h2Heads(c, func(*http2.Framer, uint32) bool { return true }) // and never opens a window
				return
			}
			<-hold
		})
		w := newWorldWith(t, true, func(c *Config) { set(c); c.Upstream.ResponseHeader = 500 * time.Millisecond }, nil)
		if alpn == "h2" {
			w.client = w.h2client()
		}
		res, body := w.do("POST", "https://api.good.example/v1/items", strings.Repeat("x", 32<<20))
		if _, why := reason(t, body); res.StatusCode != 504 || why != ReasonTimeout {
			t.Errorf("%s: %d %s", alpn, res.StatusCode, body)
		}
		close(hold)
	}
}
