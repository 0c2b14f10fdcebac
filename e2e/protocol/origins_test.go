package protocol

import (
	"bufio"
	"crypto/tls"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// odd are the answers of a server that is not Go's, by path.
var odd = map[string]oddAnswer{
	"/v1/http10": {"HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\n\r\nto the end", 200, "to the end", ""},
	"/v1/close":  {"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nto the end", 200, "to the end", ""},
	"/v1/interim": {strings.Repeat("HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n", 3) +
		"HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ndone", 200, "done", ""},
	"/v1/extensions": {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4;name=\"v\"\r\nwith\r\n5\r\n " +
		"them\r\n0\r\n\r\n", 200, "with them", ""},
	"/v1/phrase": {"HTTP/1.1 299 \r\nContent-Length: 2\r\n\r\nok", 299, "ok", ""},
	"/v1/599":    {"HTTP/1.1 599 Odd\r\nContent-Length: 2\r\n\r\nok", 599, "ok", ""},
	"/v1/205":    {"HTTP/1.1 205 Reset Content\r\nContent-Length: 0\r\n\r\n", 205, "", ""},
	"/v1/redirect": {"HTTP/1.1 302 Found\r\nLocation: https://elsewhere.example/\r\nContent-Length: 0\r\n\r\n", 302, "",
		""},
	"/v1/half": {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n", 200, "half",
		"upstream_truncated"},
	"/v1/ssh":     {"SSH-2.0-OpenSSH_9.2\r\n", 502, "", "upstream_not_http"},
	"/v1/nothing": {"", 502, "", "upstream_closed"},
	"/v1/endless": {"HTTP/1.1 200 OK\r\nX-Long: " + strings.Repeat("x", 400<<10) + "\r\n\r\n", 502, "",
		"upstream_head_too_large"},
}

type oddAnswer struct {
	bytes  string
	status int
	body   string // of an answer of the origin's
	reason string // in the row
}

// serveOdd answers each connection's first request, and ends the connection
// as TLS does.
func (s *server) serveOdd() error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	s.resolve[hostOdd+":443"] = l.Addr().String()
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			secure := tls.Server(conn, s.tls)
			if r, err := http.ReadRequest(bufio.NewReader(secure)); err == nil &&
				r.Header.Get("Authorization") == "Bearer "+secret {
				_, _ = secure.Write([]byte(odd[r.URL.Path].bytes))
			}
			_ = secure.Close()
		}
	}()
	s.closers = append(s.closers, func() { _ = l.Close(); <-done })
	return nil
}

// Servers of all ages: what one answers is what every client understands.
func TestOldAndOddOriginsAreUnderstood(t *testing.T) {
	for path, c := range odd {
		for _, flag := range []string{"--http1.1", "--http2"} {
			t.Run(flag[2:]+path, func(t *testing.T) {
				began := time.Now()
				g, err := shared.tryCurl(t, flag, "https://"+hostOdd+path)
				if g.Status != c.status || c.body != "" && g.Body != c.body || (err != nil) != (c.reason == "upstream_truncated") {
					t.Errorf("got %d %q, %v", g.Status, g.Body, err)
				}
				if reason, _ := shared.row(t, path, began)["reason"].(string); reason != c.reason {
					t.Errorf("the row has reason %q, want %q", reason, c.reason)
				}
			})
		}
	}
}
