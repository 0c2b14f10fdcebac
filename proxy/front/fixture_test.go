package front

import (
	"bufio"
	"context"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/ca"
	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/proxy"
)

const testToken = "session-token-of-the-test"

// testPatience is as long as only a defect takes, on a busy machine too.
var testPatience = must.Patience(5 * time.Minute)

// rows is an audit log in memory.
type rows struct {
	mu  sync.Mutex
	all []audit.Row
}

func (l *rows) Append(ctx context.Context, r audit.Row) (audit.Row, error) {
	return r, l.AppendSoon(ctx, r)
}

func (l *rows) AppendSoon(_ context.Context, r audit.Row) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, r)
	return nil
}

func (l *rows) list() []audit.Row {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all[:len(l.all):len(l.all)]
}

// session is a front whose plane grants nothing: package proxy's tests have an upstream behind it.
type session struct {
	t *testing.T
	*rows
	front *Front
	ca    *ca.Session
	at    net.Addr
	end   func() // ends the listener, and waits
}

func newSession(t *testing.T, at Listener, set func(*proxy.Config)) *session {
	t.Helper()
	s := newFront(t, set)
	s.listen(at, func(l net.Listener) net.Listener { return l })
	return s
}

// newFront returns a session that serves no listener yet.
func newFront(t *testing.T, set func(*proxy.Config)) *session {
	t.Helper()
	s := &session{t: t, rows: &rows{}}
	var err error
	s.ca, err = ca.NewSession(ca.Options{Session: "test"})
	must.Do(t, err)
	cfg := proxy.Config{Session: "01SESSION", Token: testToken, CA: s.ca, Audit: s.rows,
		Limits: proxy.Limits{Handshake: time.Hour}}
	set(&cfg)
	s.ca = cfg.CA
	plane := must.Get(proxy.New(cfg))(t)
	s.front = New(plane)
	t.Cleanup(func() { plane.Drain(context.Background()) })
	return s
}

func unchanged(*proxy.Config) {}

// listen serves a listener, which around may change.
func (s *session) listen(at Listener, around func(net.Listener) net.Listener) {
	s.t.Helper()
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(s.t)
	s.at = l.Addr()
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan struct{})
	go func() { defer close(served); _ = s.front.Serve(ctx, around(l), at) }()
	s.end = sync.OnceFunc(func() { cancel(); <-served })
	s.t.Cleanup(s.end)
}

// dial opens a connection and sends what is given.
func (s *session) dial(request string) net.Conn {
	s.t.Helper()
	c := must.Get(net.Dial(s.at.Network(), s.at.String()))(s.t)
	s.t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(testPatience))
	must.Get(io.WriteString(c, request))(s.t)
	return c
}

// say sends one request as it is, and returns the response and its body.
func (s *session) say(request string) (*http.Response, string) {
	s.t.Helper()
	conn := s.dial(request)
	must.Do(s.t, conn.SetReadDeadline(time.Now().Add(testPatience))) // a tunnel that was opened says nothing
	res := must.Get(http.ReadResponse(bufio.NewReader(conn), nil))(s.t)
	defer res.Body.Close()
	body, _ := io.ReadAll(res.Body)
	return res, string(body)
}

// connectTo is a CONNECT with the session's token.
func connectTo(target string) string {
	return fmt.Sprintf("CONNECT %s HTTP/1.1\r\nHost: %[1]s\r\nProxy-Authorization: Bearer "+testToken+"\r\n\r\n", target)
}

// connect opens a tunnel.
func (s *session) connect(target string) net.Conn {
	s.t.Helper()
	conn := s.dial(connectTo(target))
	res := must.Get(http.ReadResponse(bufio.NewReaderSize(conn, 1), &http.Request{Method: http.MethodConnect}))(s.t)
	if res.StatusCode != 200 {
		s.t.Fatalf("CONNECT %s: %d", target, res.StatusCode)
	}
	return conn
}

// trusted are the roots of a client that trusts the session.
func (s *session) trusted() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(s.ca.Root())
	return pool
}

// until waits for n rows.
func (s *session) until(n int) []audit.Row {
	s.t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(testPatience); time.Now().Before(end); <-tick.C {
		if got := s.list(); len(got) >= n {
			return got
		}
	}
	s.t.Fatalf("rows: %+v, want %d", s.list(), n)
	return nil
}

// denied fails the test unless a response is the denial for a reason, and the last row is its own.
func (s *session) denied(what string, res *http.Response, body string, reason proxy.Reason) {
	s.t.Helper()
	all := s.list()
	if len(all) == 0 || !strings.Contains(body, `"reason":"`+string(reason)+`"`) {
		s.t.Errorf("%s: got %d %s, and %d rows", what, res.StatusCode, body, len(all))
		return
	}
	if row := all[len(all)-1]; proxy.Reason(row.Reason) != reason || row.Status != res.StatusCode ||
		res.Header.Get("X-Aileron-Audit-Id") != row.ID {
		s.t.Errorf("%s: the row is %+v", what, row)
	}
}
