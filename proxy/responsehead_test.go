package proxy

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/iotest"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/ca"
)

// badHeads are response heads that may not be delivered, by what is wrong.
// noStatusLine are those of badHeads that do not begin as HTTP/1 does.
var noStatusLine = []string{"no HTTP", "no line", "HTTP/2", "ICY", "two digits of version", "no version", "short status", "signed status",
	"tab in the status line", "empty line first", "binary", "LF of another protocol", "control character of another protocol"}

var badHeads = map[string]string{
	"length and coding":                     "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
	"coding and length":                     "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nServer: x\r\ncontent-length: 0\r\n\r\n",
	"two lengths":                           "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
	"two lengths, three fields":             "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 5\r\nCONTENT-LENGTH: 6\r\n\r\n",
	"list of lengths":                       "HTTP/1.1 200 OK\r\nContent-Length: 5, 6\r\n\r\n",
	"plus":                                  "HTTP/1.1 200 OK\r\nContent-Length: +5\r\n\r\n",
	"minus":                                 "HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n",
	"hexadecimal":                           "HTTP/1.1 200 OK\r\nContent-Length: 0x5\r\n\r\n",
	"empty length":                          "HTTP/1.1 200 OK\r\nContent-Length:\r\n\r\n",
	"huge length":                           "HTTP/1.1 200 OK\r\nContent-Length: 18446744073709551621\r\n\r\n",
	"unknown coding":                        "HTTP/1.1 200 OK\r\nTransfer-Encoding: xchunked\r\n\r\n",
	"coding of no name":                     "HTTP/1.1 200 OK\r\nTransfer-Encoding:\r\n\r\n",
	"two codings":                           "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
	"chunked twice":                         "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
	"identity":                              "HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\nContent-Length: 5\r\n\r\n",
	"coding in HTTP/1.0":                    "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
	"204 with coding":                       "HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n",
	"204 with length":                       "HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n",
	"304 with coding":                       "HTTP/1.1 304 Not Modified\r\nTransfer-Encoding: chunked\r\n\r\n",
	"103 with length":                       "HTTP/1.1 103 Early Hints\r\nContent-Length: 5\r\n\r\nhelloHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n",
	"100 with coding":                       "HTTP/1.1 100 Continue\r\nTransfer-Encoding: chunked\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n",
	"bad after interim":                     "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
	"bare CR":                               "HTTP/1.1 200 OK\r\nX: a\rContent-Length: 7\r\nContent-Length: 5\r\n\r\n",
	"bare LF":                               "HTTP/1.1 200 OK\r\nX: a\nContent-Length: 5\r\n\r\n",
	"LF alone":                              "HTTP/1.1 200 OK\nContent-Length: 5\n\n",
	"LF at the end":                         "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\n",
	"CR CR LF":                              "HTTP/1.1 200 OK\r\nContent-Length: 5\r\r\n\r\n",
	"NUL":                                   "HTTP/1.1 200 OK\r\nX: a\x00b\r\nContent-Length: 5\r\n\r\n",
	"CR in the status line":                 "HTTP/1.1 200 OK\rX: y\r\nContent-Length: 5\r\n\r\n",
	"folded length":                         "HTTP/1.1 200 OK\r\nContent-Length:\r\n 5\r\n\r\n",
	"folded coding":                         "HTTP/1.1 200 OK\r\nTransfer-Encoding:\r\n\tchunked\r\n\r\n",
	"folded into a length":                  "HTTP/1.1 200 OK\r\nX: y\r\n Content-Length: 5\r\n\r\n",
	"folded first line":                     "HTTP/1.1 200 OK\r\n Content-Length: 5\r\n\r\n",
	"no colon":                              "HTTP/1.1 200 OK\r\nContent-Length 5\r\n\r\n",
	"no name":                               "HTTP/1.1 200 OK\r\n: 5\r\n\r\n",
	"no HTTP":                               "SSH-2.0-OpenSSH_9.2p1\r\n",
	"no line":                               "220 ",
	"binary":                                "\x00\xff\x01\x02\r\n\r\n",
	"LF of another protocol":                "+OK POP3 ready\n",
	"control character of another protocol": "* OK IMAP\x07\r\n",
	"HTTP/2":                                "HTTP/2.0 200 OK\r\nContent-Length: 5\r\n\r\n",
	"ICY":                                   "ICY 200 OK\r\nContent-Length: 5\r\n\r\n",
	"two digits of version":                 "HTTP/1.10 200 OK\r\nContent-Length: 5\r\n\r\n",
	"no version":                            "HTTP/1. 200 OK\r\nContent-Length: 5\r\n\r\n",
	"short status":                          "HTTP/1.1 20 OK\r\nContent-Length: 5\r\n\r\n",
	"signed status":                         "HTTP/1.1 +20 OK\r\nContent-Length: 5\r\n\r\n",
	"tab in the status line":                "HTTP/1.1\t200 OK\r\nContent-Length: 5\r\n\r\n",
	"empty line first":                      "\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n",
}

// goodHeads are strange and fine.
var goodHeads = map[string]string{
	"plain":              "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
	"twice the length":   "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\nhello",
	"spaces":             "HTTP/1.1 200 OK\r\nContent-Length:\t 5 \t\r\n\r\nhello",
	"HTTP/1.0":           "HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nhello",
	"until it closes":    "HTTP/1.0 200 OK\r\n\r\nhello",
	"chunked":            "HTTP/1.1 200 OK\r\ntransfer-encoding: CHUNKED\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
	"no reason":          "HTTP/1.1 200\r\nContent-Length: 5\r\n\r\nhello",
	"Latin-1":            "HTTP/1.1 200 D'accord \xe9\r\nX: caf\xe9\r\nContent-Length: 5\r\n\r\nhello",
	"interim ones first": "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
	"over one buffer":    "HTTP/1.1 200 OK\r\nX-Long: " + strings.Repeat("abcdefghijkl", 3000) + "\r\nContent-Length: 5\r\n\r\nhello",
}

func TestAResponseHeadHasOneReading(t *testing.T) {
	read := func(raw io.Reader) (*http.Response, error) {
		in, out := net.Pipe()
		defer in.Close()
		go func() { _, _ = io.Copy(out, raw); _ = out.Close() }()
		c := (&lane{}).newConn("", in, nil)
		c.left = maxResponseHead
		res, err := c.readResponse(&http.Request{Method: http.MethodGet}, &attempt{})
		if err != nil {
			return nil, err
		}
		c.left = 1 << 20
		body, err := io.ReadAll(res.Body)
		if err == nil && string(body) != "hello" {
			err = fmt.Errorf("the body is %q", body)
		}
		return res, err
	}
	for _, drips := range []bool{false, true} {
		from := func(raw string) io.Reader {
			if drips {
				return iotest.OneByteReader(strings.NewReader(raw))
			}
			return strings.NewReader(raw)
		}
		for name, raw := range badHeads {
			var head *headError
			if _, err := read(from(raw + "hello")); !errors.As(err, &head) {
				t.Errorf("%s: %v, want a headError", name, err)
			}
		}
		for name, raw := range goodHeads {
			if _, err := read(from(raw)); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	for name, raw := range map[string]string{
		"endless line": "HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 1<<20), "endless fields": "HTTP/1.1 200 OK\r\n" + strings.Repeat("X: y\r\n", 1<<18),
	} {
		var head *headError
		if _, err := read(strings.NewReader(raw)); !errors.As(err, &head) || head.fault != tooLarge {
			t.Errorf("%s: %v", name, err)
		}
	}
}

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
	for way, ask := range upstreamWays {
		t.Run(way, func(t *testing.T) {
			var head string // set between requests only
			w, s := speak(t, plainly, func(conn net.Conn, _ string) { _, _ = io.WriteString(conn, head+"hello") })
			conns := s.conns.Load()
			for name, raw := range badHeads {
				head = raw
				status, body := ask(w)
				if status != 502 {
					t.Fatalf("%s: %d %q", name, status, body)
				}
				class, why := reason(t, body)
				want := reasonUpstream
				if slices.Contains(noStatusLine, name) {
					want = reasonUpstreamHTTP
				}
				if why != want || class != "network_error" {
					t.Fatalf("%s: %d %s", name, status, body)
				}
				if r := w.last(); r.Event != audit.EventProxyRejected || r.Reason != want {
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

// With a credential and without, since it is the connection that suffers.
func TestAFramingFieldWithAnOddNameIsRefused(t *testing.T) {
	for _, field := range []string{"Content-Length : 5", "Transfer-Encoding : chunked", "Transfer-Encoding\t: chunked", "Content_Length: 5", "transfer-encoding\xa0: chunked"} {
		w, s := speak(t, func(c *Config) {
			c.Upstream.Resolve["plain.good.example:443"] = c.Upstream.Resolve["api.good.example:443"]
		},
			func(conn net.Conn, _ string) {
				_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\n"+field+"\r\nContent-Length: 0\r\n\r\n")
			})
		for _, host := range []string{"api.good.example", "plain.good.example"} {
			res, body := w.do("GET", "https://"+host+"/v1/items", "")
			if res.StatusCode != 502 {
				t.Fatalf("%q of %s: %d %q", field, host, res.StatusCode, body)
			}
			if class, why := reason(t, body); class != "response_unsafe" || why != reasonFieldName {
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

// coalesced holds back what is written until it is told to send it, in one
// piece.
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

// A TLS record behind a response lies in crypto/tls, where neither the socket
// nor the reader of the head shows it.
func TestARecordBehindAResponseIsNoResponse(t *testing.T) {
	authority, err := ca.NewSession(ca.Options{Session: "origin"})
	must(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	var conns atomic.Int64
	var group sync.WaitGroup
	group.Go(func() {
		for {
			raw, err := l.Accept()
			if err != nil {
				return
			}
			conns.Add(1)
			group.Go(func() {
				defer raw.Close()
				held := &coalesced{Conn: raw}
				secure := tls.Server(held, &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: func(h *tls.ClientHelloInfo) (*tls.Certificate, error) {
					return authority.Leaf(h.ServerName)
				}})
				for br := bufio.NewReader(secure); ; {
					if _, err := http.ReadRequest(br); err != nil {
						return
					}
					held.hold = true
					_, _ = io.WriteString(secure, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
					_, _ = io.WriteString(secure, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil")
					held.flush()
				}
			})
		}
	})
	t.Cleanup(group.Wait)
	t.Cleanup(func() { _ = l.Close() })
	w := newWorldWith(t, false, func(c *Config) {
		c.Upstream.Roots = x509.NewCertPool()
		c.Upstream.Roots.AddCert(authority.Root())
		c.Upstream.Resolve["api.good.example:443"] = netip.MustParseAddrPort(l.Addr().String())
	}, nil)
	for n := range int64(3) {
		if res, body := w.do("GET", "https://api.good.example/v1/items", ""); res.StatusCode != 200 || body != "ok" {
			t.Errorf("got %d %q", res.StatusCode, body)
		}
		if got := conns.Load(); got != n+1 {
			t.Errorf("after %d responses there were %d connections", n+1, got)
		}
	}
}
