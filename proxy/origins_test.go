package proxy

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/ALRubinger/aileron/ca"
	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/proxy/scrub"
)

// scripted leads every host to a TLS origin whose connections f serves, the
// n-th as it likes.
func scripted(t testing.TB, alpn string, f func(n int, c *tls.Conn)) func(*Config) {
	t.Helper()
	authority := must.Get(ca.NewSession(ca.Options{Session: "origin"}))(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must.Do(t, err)
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

// h2Requests calls f with the body of each request on a connection of HTTP/2, until it returns false.
func h2Requests(c net.Conn, f func(fr *http2.Framer, stream uint32, body string) (more bool)) {
	if _, err := io.ReadFull(c, make([]byte, len(http2.ClientPreface))); err != nil {
		return
	}
	fr := http2.NewFramer(c, c)
	_ = fr.WriteSettings()
	bodies := map[uint32]string{}
	for more := true; more; {
		frame, err := fr.ReadFrame()
		if err != nil {
			return
		}
		h := frame.Header()
		if data, ok := frame.(*http2.DataFrame); ok {
			bodies[h.StreamID] += string(data.Data())
			_ = fr.WriteWindowUpdate(0, max(h.Length, 1))
			_ = fr.WriteWindowUpdate(h.StreamID, max(h.Length, 1))
		}
		if (h.Type == http2.FrameHeaders || h.Type == http2.FrameData) && h.Flags.Has(http2.FlagDataEndStream) {
			more = f(fr, h.StreamID, bodies[h.StreamID])
		}
	}
}

// A host that ends a connection, or has no room on it, says which requests it did not process (RFC 9113 section 8.7).
// They have had no effect, so any of them is sent again, once.
func TestARequestThatWasNotProcessedIsSentAgainOnce(t *testing.T) {
	small, large := strings.Repeat("a small body ", 1000), strings.Repeat("a body that is not kept", 10_000)
	for name, refuse := range map[string]func(fr *http2.Framer, stream uint32) bool{
		"GOAWAY": func(fr *http2.Framer, stream uint32) bool {
			_ = fr.WriteGoAway(stream-min(stream, 2), http2.ErrCodeNo, nil)
			return false
		},
		"GOAWAY with an error": func(fr *http2.Framer, _ uint32) bool {
			_ = fr.WriteGoAway(0, http2.ErrCodeEnhanceYourCalm, []byte("too many"))
			return false
		},
		"REFUSED_STREAM": func(fr *http2.Framer, stream uint32) bool {
			_ = fr.WriteRSTStream(stream, http2.ErrCodeRefusedStream)
			return true
		},
	} {
		for _, c := range []struct {
			what, method, host, body string
			refusals                 int32
			asked                    int32
			status                   int
		}{
			{"a request to read", "GET", "q.good.example", "", 1, 2, 200},
			{"one to write", "POST", "api.good.example", small, 1, 2, 200},
			{"one to write without a body", "POST", "api.good.example", "", 1, 2, 200},
			{"one that is refused twice", "POST", "api.good.example", small, 2, 2, 503},
			{"one to read that is refused twice", "GET", "q.good.example", "", 2, 2, 503},
			{"a body that is too large to keep", "POST", "api.good.example", large, 1, 1, 503},
		} {
			t.Run(name+"/"+c.what, func(t *testing.T) {
				var asked atomic.Int32
				w := newWorldWith(t, true, scripted(t, "h2", func(_ int, conn *tls.Conn) {
					h2Requests(conn, func(fr *http2.Framer, stream uint32, body string) bool {
						if asked.Add(1) <= c.refusals {
							return refuse(fr, stream)
						}
						if body != c.body {
							t.Errorf("the host got %d bytes, want %d", len(body), len(c.body))
						}
						var block bytes.Buffer
						_ = hpack.NewEncoder(&block).WriteField(hpack.HeaderField{Name: ":status", Value: "200"})
						_ = fr.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: block.Bytes(),
							EndHeaders: true, EndStream: true})
						return true
					})
					_ = conn.CloseWrite() // and reads what comes: else the kernel may reset the connection
					_, _ = io.Copy(io.Discard, conn.NetConn())
				}), nil)
				w.client = w.h2client()
				res, body := w.do(c.method, "https://"+c.host+"/v1/items", c.body)
				if res.StatusCode != c.status || asked.Load() != c.asked {
					t.Fatalf("%d %s; the host was asked %d times, want %d and %d", res.StatusCode, body, asked.Load(), c.status,
						c.asked)
				}
				if c.status == 200 {
					return
				}
				if _, why := reason(t, body); why != ReasonUpstreamUnprocessed || !strings.Contains(body, `"retriable":true`) {
					t.Errorf("it is denied with %s", body)
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
	must.Do(t, err)
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(testPatience))
	_, err = fmt.Fprintf(conn,
		"GET http://plain.good.example/ HTTP/1.1\r\nHost: plain.good.example\r\nProxy-Authorization: Bearer %s\r\n\r\n",
		testToken)
	must.Do(t, err)
	res := must.Get(http.ReadResponse(bufio.NewReader(conn), nil))(t)
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
	res := must.Get(w.client.Get("https://api.good.example/v1/echo"))(t)
	defer res.Body.Close()
	must.Get(io.ReadFull(res.Body, make([]byte, len("data: first\n\n"))))(t)
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
	must.Do(t, err)
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

// A number that no registry has is what the upstream says: LinkedIn's 999.
func TestAStatusThatIsNotRegisteredIsPassedOn(t *testing.T) {
	for _, alpn := range []string{"http/1.1", "h2"} {
		for _, status := range []string{"600", "999"} {
			w, _ := speak(t, plainly, func(c net.Conn, _ string) {
				_, _ = fmt.Fprintf(c, "HTTP/1.1 %s Request denied\r\nContent-Length: 5\r\n\r\nhello", status)
			})
			if alpn == "h2" {
				w.client = w.h2client()
			}
			res, body := w.do("GET", "https://api.good.example/v1/items", "")
			if got := strconv.Itoa(res.StatusCode); got != status || body != "hello" || w.last().Status != res.StatusCode {
				t.Errorf("%s to %s: %s %q, the row has %d", status, alpn, got, body, w.last().Status)
			}
		}
	}
}

func TestAnInvalidStatusIsRejected(t *testing.T) {
	for _, status := range []string{"000", "099"} {
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
		w := newWorldWith(t, true, func(c *Config) { set(c); c.Upstream.Stall = 500 * time.Millisecond }, nil)
		if alpn == "h2" {
			w.client = w.h2client()
		}
		res, body := w.do("POST", "https://api.good.example/v1/items", strings.Repeat("x", 16<<20))
		if _, why := reason(t, body); res.StatusCode != 504 || why != ReasonTimeout {
			t.Errorf("%s: %d %s", alpn, res.StatusCode, body)
		}
		close(hold)
	}
}
