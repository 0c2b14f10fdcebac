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
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/e2e/must"
)

// redirected serves w's plane behind a socket of a gateway, and returns a
// function that opens a redirected connection to a target, and one that ends
// the listener.
func (w *world) redirected() (open func(target string) net.Conn, end func()) {
	w.t.Helper()
	path := filepath.Join(w.t.TempDir(), "redirect.sock")
	l := must.Get(net.Listen("unix", path))(w.t)
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan struct{})
	seen := &seenListener{Listener: l}
	w.listeners = append(w.listeners, seen)
	go func() { defer close(served); _ = w.serve(ctx, seen, true, true) }()
	end = sync.OnceFunc(func() { cancel(); <-served })
	w.t.Cleanup(end)
	return func(target string) net.Conn {
		raw := must.Get(net.Dial("unix", path))(w.t)
		c := &sentConn{Conn: raw}
		_ = c.SetDeadline(time.Now().Add(testPatience))
		fmt.Fprintf(c, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n", target, target)
		res := must.Get(http.ReadResponse(bufio.NewReaderSize(c, 1), &http.Request{Method: http.MethodConnect}))(w.t)
		if res.StatusCode != 200 {
			w.t.Fatalf("CONNECT %s: %d", target, res.StatusCode)
		}
		return c
	}, end
}

func TestARedirectedConnectionThatAsksForNothingHasARow(t *testing.T) {
	w := newWorld(t, hello)
	open, end := w.redirected()
	roots := x509.NewCertPool()
	roots.AddCert(w.ca.Root())
	handshake := func(c net.Conn, protocol string) {
		s := tls.Client(c, &tls.Config{ServerName: "api.good.example", RootCAs: roots, MinVersion: tls.VersionTLS12,
			NextProtos: []string{protocol}})
		must.Do(t, s.Handshake())
		_ = s.Close()
	}
	for i, c := range []struct {
		name, target, connector string
		speak                   func(net.Conn)
	}{
		{"connect and close", "mail.example:25", "", func(c net.Conn) { _ = c.Close() }},
		{"TLS and nothing", "api.good.example:443", "github://acme/tracker", func(c net.Conn) { handshake(c, "http/1.1") }},
		{"HTTP/2 and nothing", "api.good.example:443", "github://acme/tracker", func(c net.Conn) { handshake(c, "h2") }},
	} {
		conn := open(c.target)
		c.speak(conn)
		_ = conn.Close()
		rows := w.untilRows(func(rows []audit.Row) bool { return len(rows) > i })
		r := rows[i]
		if r.Event != audit.EventSandboxRejected || r.Decision != audit.DecisionRejected ||
			Reason(r.Reason) != ReasonNoRequest || r.Method != "CONNECT" ||
			fmt.Sprintf("%s:%d", r.Host, r.Port) != c.target || r.Fields["redirected"] != true || r.ConnectorFQN != c.connector {
			t.Errorf("%s: %+v", c.name, r)
		}
	}
	conn := open("plain.good.example:80")
	fmt.Fprint(conn, "GET /x HTTP/1.1\r\nHost: plain.good.example\r\nConnection: close\r\n\r\n")
	_, _ = io.ReadAll(conn)
	end()
	rows := w.rows()
	if len(rows) != 5 || rows[3].Event != audit.EventProxyStarted || rows[4].Event != audit.EventProxyProxied ||
		rows[4].Fields["redirected"] != true {
		t.Errorf("after a redirected request: %+v", rows[3:])
	}
}

// A client that waits for its server to speak first waits until the handshake's
// time is over.
func TestAClientThatWaitsForItsServerHasARow(t *testing.T) {
	w := newWorldWith(t, false, func(c *Config) { c.Limits.Handshake = 500 * time.Millisecond }, hello)
	open, _ := w.redirected()
	conn := open("db.example:3306")
	defer conn.Close()
	if said, err := io.ReadAll(conn); err != nil || len(said) > 0 {
		t.Errorf("it reads %q, %v", said, err)
	}
	r := w.untilRows(func(rows []audit.Row) bool { return len(rows) > 0 })[0]
	if Reason(r.Reason) != ReasonNoRequest || r.Host != "db.example" || r.Port != 3306 || r.Fields["redirected"] != true {
		t.Errorf("row %+v", r)
	}
}

// A client's own CONNECT alone is no request.
func TestAConnectAloneHasNoRow(t *testing.T) {
	w := newWorld(t, hello)
	_ = w.tunnel("api.good.example").Close()
	_, _ = w.do("GET", "https://api.good.example/v1/items", "")
	rows := w.untilRows(func(rows []audit.Row) bool { return len(rows) == 2 })
	if rows[1].Reason != "" || rows[1].Fields["redirected"] != nil {
		t.Errorf("rows: %+v", rows)
	}
}
