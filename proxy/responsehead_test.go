package proxy

import (
	"bytes"
	"crypto/tls"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/e2e/must"
)

// upstreamWays are the ways in which a request can reach an upstream over
// HTTP/1.1: each by a client of its own kind.
var upstreamWays = map[string]func(w *world) (int, string){
	"GET":       func(w *world) (int, string) { return w.status("GET", "", w.client) },
	"POST":      func(w *world) (int, string) { return w.status("POST", "a body", w.client) },
	"GET, h2":   func(w *world) (int, string) { return w.status("GET", "", w.h2client()) },
	"POST, h2":  func(w *world) (int, string) { return w.status("POST", "a body", w.h2client()) },
	"WebSocket": (*world).handshakeStatus,
}

func (w *world) status(method, body string, client *http.Client) (int, string) {
	w.t.Helper()
	old := w.client
	w.client = client
	defer func() { w.client = old }()
	res, got := w.do(method, "https://api.good.example/v1/items", body)
	return res.StatusCode, got
}

func (w *world) handshakeStatus() (int, string) {
	w.t.Helper()
	_, _, res := w.websocket()
	body, _ := io.ReadAll(res.Body)
	return res.StatusCode, string(body)
}

func TestAHeadOfTwoReadingsIsRefusedOnEveryWay(t *testing.T) {
	notHTTP := readHeads(t, "upstream/testdata/nothttp.txt")
	bad := readHeads(t, "upstream/testdata/malformed.txt")
	maps.Copy(bad, notHTTP)
	for way, ask := range upstreamWays {
		t.Run(way, func(t *testing.T) {
			var head string // set between requests only
			w, s := speak(t, plainly, func(conn net.Conn, _ string) { _, _ = io.WriteString(conn, head+"hello") })
			conns := s.conns.Load()
			for name, raw := range bad {
				head = raw
				status, body := ask(w)
				if status != 502 {
					t.Fatalf("%s: %d %q", name, status, body)
				}
				class, why := reason(t, body)
				want := ReasonUpstream
				if _, ok := notHTTP[name]; ok {
					want = ReasonUpstreamHTTP
				}
				if why != want || class != "network_error" {
					t.Fatalf("%s: %d %s", name, status, body)
				}
				if r := w.last(); r.Event != audit.EventProxyRejected || Reason(r.Reason) != want {
					t.Errorf("%s: the row is %s %s", name, r.Event, r.Reason)
				}
				s.ends(t)
				if conns++; s.conns.Load() != conns {
					t.Errorf("%s: %d connections, want %d: it was asked again, or used again", name, s.conns.Load(), conns)
				}
			}
		})
	}
}

// Older frameworks send the last chunk behind a 204, and gateways a length.
func TestWhatABodylessResponseAnnouncesIsNotTheNextOne(t *testing.T) {
	for head, status := range map[string]int{
		"HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n":                  204,
		"HTTP/1.1 204 No Content\r\nContent-Length: 40\r\n\r\n":                                   204,
		"HTTP/1.1 304 Not Modified\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n":                304,
		"HTTP/1.1 204 No Content\r\nContent-Length: 0, 0\r\nLocation: /x\r\nLocation: /x\r\n\r\n": 204,
	} {
		announces := !strings.Contains(head, "0, 0")
		w, s := speak(t, plainly, func(conn net.Conn, _ string) {
			if announces {
				head += "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nother"
			}
			_, _ = io.WriteString(conn, head)
		})
		for i := range int64(2) {
			res, body := w.do("GET", "https://api.good.example/v1/items", "")
			if res.StatusCode != status || body != "" || len(res.Header["Content-Length"]) > 0 {
				t.Errorf("%q: %d %q with the length %q", head, res.StatusCode, body, res.Header["Content-Length"])
			}
			if announces {
				s.ends(t)
			}
			if conns := s.conns.Load(); announces && conns != i+1 || !announces && conns != 1 {
				t.Errorf("%q: %d connections after %d requests", head, conns, i+1)
			}
		}
	}
}

// With a credential and without, since it is the connection that suffers.
func TestAFramingFieldWithAnOddNameIsRefused(t *testing.T) {
	for _, field := range []string{"Content-Length : 5", "Transfer-Encoding : chunked", "Transfer-Encoding\t: chunked",
		"Content_Length: 5", "transfer-encoding\xa0: chunked"} {
		w, s := speak(t, func(c *Config) {
			c.Upstream.Resolve["plain.good.example:443"] = c.Upstream.Resolve["api.good.example:443"]
		},
			func(conn net.Conn, _ string) {
				_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\n"+field+"\r\nContent-Length: 0\r\n\r\n")
			})
		for _, host := range []string{"api.good.example", "plain.good.example"} {
			res, body := w.do("GET", "https://"+host+"/v1/items", "")
			if res.StatusCode != 406 {
				t.Fatalf("%q of %s: %d %q", field, host, res.StatusCode, body)
			}
			if class, why := reason(t, body); class != "response_unsafe" || why != ReasonFieldName {
				t.Errorf("%q of %s: %s", field, host, body)
			}
			s.ends(t)
		}
	}
}

// net/http drops what could frame a response a second time over HTTP/2.
func TestAnHTTP2ResponseIsFramedByHTTP2Alone(t *testing.T) {
	for name, fields := range map[string][]hpack.HeaderField{
		"coding":      {{Name: "transfer-encoding", Value: "chunked"}},
		"two lengths": {{Name: "content-length", Value: "5"}, {Name: "content-length", Value: "6"}},
		"plus":        {{Name: "content-length", Value: "+5"}},
		"both":        {{Name: "content-length", Value: "5"}, {Name: "transfer-encoding", Value: "chunked"}},
	} {
		t.Run(name, func(t *testing.T) {
			set := scripted(t, "h2", func(_ int, conn *tls.Conn) {
				h2Heads(conn, func(fr *http2.Framer, stream uint32) bool {
					var block bytes.Buffer
					enc := hpack.NewEncoder(&block)
					for _, f := range append([]hpack.HeaderField{{Name: ":status", Value: "200"}}, fields...) {
						_ = enc.WriteField(f)
					}
					_ = fr.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: block.Bytes(), EndHeaders: true})
					_ = fr.WriteData(stream, true, []byte("hello"))
					return true
				})
			})
			w := newWorldWith(t, true, set, nil)
			w.client = w.h2client()
			res, body := w.do("GET", "https://api.good.example/v1/items", "")
			if coding, length := res.Header["Transfer-Encoding"], res.Header["Content-Length"]; len(coding) > 0 ||
				len(length) > 0 && (len(length) > 1 || length[0] != "5") {
				t.Errorf("%d %q arrives with %q and %q", res.StatusCode, body, length, coding)
			}
		})
	}
}

// readHeads returns the heads of a file, by name.
func readHeads(t *testing.T, path string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(path)
	must.Do(t, err)
	heads := map[string]string{}
	for line := range strings.Lines(string(text)) {
		name, quoted, ok := strings.Cut(strings.TrimSpace(line), ": ")
		if !ok || strings.HasPrefix(line, "#") {
			continue
		}
		heads[name], err = strconv.Unquote(quoted)
		must.Do(t, err)
	}
	return heads
}
