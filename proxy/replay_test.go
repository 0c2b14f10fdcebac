package proxy

import (
	"bufio"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/ALRubinger/aileron/ca"
	"github.com/ALRubinger/aileron/e2e/must"
)

// dying is an origin that answers the first request of a connection, reads
// the second one and dies. It counts what it read.
type dying struct {
	addr netip.AddrPort
	read atomic.Int64
}

func newDying(t *testing.T, authority *ca.Session) *dying {
	t.Helper()
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{MinVersion: tls.VersionTLS12,
		GetCertificate: func(h *tls.ClientHelloInfo) (*tls.Certificate, error) { return authority.Leaf(h.ServerName) }})
	must.Do(t, err)
	t.Cleanup(func() { _ = l.Close() })
	d := &dying{addr: netip.MustParseAddrPort(l.Addr().String())}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go d.serve(conn)
		}
	}()
	return d
}

func (d *dying) serve(conn net.Conn) {
	defer conn.Close()
	br := bufio.NewReader(conn)
	for n := 0; ; n++ {
		r, err := http.ReadRequest(br)
		if err != nil {
			return
		}
		body, _ := io.ReadAll(r.Body)
		if r.URL.Query().Get("q") == "first" || string(body) == "first" {
			_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
			continue
		}
		d.read.Add(1)
		if n > 0 {
			return
		}
		_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nagain")
	}
}

func TestARequestReachesAnUpstreamThatDiesAtMostOnceUnlessIdempotent(t *testing.T) {
	authority := must.Get(ca.NewSession(ca.Options{Session: "dying"}))(t)
	for name, c := range map[string]struct {
		method, path, body string
		header             []string
		status             int
		reads              int64
	}{
		"POST": {"POST", "/v1/items", "x", nil, 502, 1},
		"POST with a key": {"POST", "/v1/items", "x",
			[]string{"Idempotency-Key", "k", "X-Idempotency-Key", "k"}, 502, 1},
		"empty POST with a key": {"POST", "/v1/items", "",
			[]string{"Idempotency-Key", "k", "X-Idempotency-Key", "k"}, 502, 1},
		"GET, not idempotent":          {"GET", "/v1/items/7", "", nil, 502, 1},
		"GET, not idempotent, key":     {"GET", "/v1/items/7", "", []string{"X-Idempotency-Key", "k"}, 502, 1},
		"GET that declares idempotent": {"GET", "/v1/items", "", nil, 200, 2},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDying(t, authority)
			w := newWorldWith(t, false, func(c *Config) {
				c.Upstream.Roots.AddCert(authority.Root())
				c.Upstream.Resolve["api.good.example:443"] = d.addr
			}, hello)
			// The first goes by the same pool of connections.
			first, path := "", "?q=first"
			if c.body != "" {
				first, path = "first", ""
			}
			if res, body := w.do(map[bool]string{true: "GET", false: "POST"}[first == ""],
				"https://api.good.example/v1/items"+path, first); body != "ok" {
				t.Fatalf("the first request: %d %q", res.StatusCode, body)
			}
			res, body := w.do(c.method, "https://api.good.example"+c.path, c.body, c.header...)
			if res.StatusCode != c.status {
				t.Errorf("got %d %.100q, want %d", res.StatusCode, body, c.status)
			}
			if got := d.read.Load(); got != c.reads {
				t.Errorf("the upstream read it %d times, want %d", got, c.reads)
			}
		})
	}
}

func TestAHostAllowedAsItIsTakesEveryPath(t *testing.T) {
	w := newWorld(t, hello)
	for _, path := range []string{"/@scope%2fname", "/pool/main/f/foo_1.2%7erc1.deb", "/a;b=c/d", "/x?a=1;b=2",
		"//double//slash/", "/a/../b"} {
		got := w.raw("plain.good.example", "GET "+path+" HTTP/1.1\r\nHost: plain.good.example\r\nConnection: close\r\n\r\n")
		if !strings.HasPrefix(got, "HTTP/1.1 200") {
			t.Errorf("%s: %.200q", path, got)
			continue
		}
		seen := w.requests()
		if uri := seen[len(seen)-1].RequestURI; uri != path {
			t.Errorf("sent %s, the origin read %s", path, uri)
		}
	}
	for _, path := range []string{"/v1/items%2f7", "/v1/items/%7e", "/v1/items;x/7", "/v1/items?q=1;limit=2"} {
		got := w.raw("api.good.example", "GET "+path+" HTTP/1.1\r\nHost: api.good.example\r\nConnection: close\r\n\r\n")
		if !strings.HasPrefix(got, "HTTP/1.1 400") {
			t.Errorf("%s: %.200q", path, got)
		}
	}
}
