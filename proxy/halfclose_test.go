package proxy

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/e2e/must"
)

// halfClose ends the outbound half of a tunnel: TLS's, and then the socket's.
func halfClose(t *testing.T, c *tls.Conn) {
	t.Helper()
	must.Do(t, c.CloseWrite())
	must.Do(t, c.NetConn().(interface{ CloseWrite() error }).CloseWrite())
}

// A client that has said all and waits is still there: RFC 9112 section 9.6.
func TestAHalfClosedClientGetsItsResponse(t *testing.T) {
	asked, reply := make(chan struct{}), make(chan struct{})
	w := newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
		asked <- struct{}{}
		select {
		case <-reply:
			fmt.Fprint(rw, "answer to ", r.Method)
		case <-r.Context().Done():
			t.Error("the request was cancelled")
		}
	})
	for _, request := range []string{
		"GET /v1/items HTTP/1.1\r\nHost: api.good.example\r\n\r\n",
		"POST /v1/items HTTP/1.1\r\nHost: api.good.example\r\nContent-Length: 5\r\n\r\nhello",
		"POST /v1/items HTTP/1.1\r\nHost: api.good.example\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
	} {
		method, _, _ := strings.Cut(request, " ")
		conn := w.tunnel("api.good.example")
		must.Get(io.WriteString(conn, request))(t)
		take(t, asked, "it was asked")
		halfClose(t, conn)
		w.halfClosed(conn)
		give(t, reply)
		res := must.Get(http.ReadResponse(bufio.NewReader(conn), nil))(t)
		body, err := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if err != nil || res.StatusCode != 200 || string(body) != "answer to "+method {
			t.Errorf("%s: %d %q, %v", method, res.StatusCode, body, err)
		}
		_ = conn.Close()
		if row := w.last(); row.Event != audit.EventProxyProxied || row.Decision != audit.DecisionProxied ||
			row.Reason != "" || row.Status != 200 {
			t.Errorf("%s: row %+v", method, row)
		}
	}
}

// take waits for a signal of the origin, give sends it one; both end a test
// whose origin has gone on without it.
func take(t *testing.T, from <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-from:
	case <-time.After(testPatience):
		t.Fatalf("the origin does not say that %s", what)
	}
}

func give(t *testing.T, to chan<- struct{}) {
	t.Helper()
	select {
	case to <- struct{}{}:
	case <-time.After(testPatience):
		t.Fatal("the origin does not wait: its request was cancelled")
	}
}

func TestAStreamToAHalfClosedClientGoesOn(t *testing.T) {
	next := make(chan struct{})
	w := newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Content-Type", "text/event-stream")
		for i := range 5 {
			fmt.Fprintf(rw, "data: %d\n\n", i)
			rw.(http.Flusher).Flush()
			select {
			case <-next:
			case <-r.Context().Done():
				t.Error("the stream was cancelled")
				return
			}
		}
	})
	conn := w.tunnel("api.good.example")
	fmt.Fprint(conn, "GET /v1/items HTTP/1.1\r\nHost: api.good.example\r\n\r\n")
	halfClose(t, conn)
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	must.Do(t, err)
	defer res.Body.Close()
	lines := bufio.NewReader(res.Body)
	for i := range 5 {
		line, err := lines.ReadString('\n')
		if err != nil || line != fmt.Sprintf("data: %d\n", i) {
			t.Fatalf("event %d: %q, %v", i, line, err)
		}
		_, _ = lines.ReadString('\n')
		w.halfClosed(conn)
		give(t, next)
	}
	if rest, err := io.ReadAll(lines); err != nil || len(rest) > 0 {
		t.Errorf("the end: %q, %v", rest, err)
	}
	w.untilRows(func(rows []audit.Row) bool {
		return len(rows) == 2 && rows[1].Reason == "" && rows[1].Decision == "proxied"
	})
}

// A client that goes away, whole or after its half-close, ends its request. What
// was sent is no refusal.
func TestADepartureCancelsAndIsDistinguishedFromADenial(t *testing.T) {
	asked, cancelled := make(chan struct{}, 16), make(chan struct{}, 16)
	w := newWorld(t, func(_ http.ResponseWriter, r *http.Request) {
		asked <- struct{}{}
		<-r.Context().Done()
		cancelled <- struct{}{}
	})
	open, _ := w.redirected()
	overUnix := func() *tls.Conn {
		s := tls.Client(open("api.good.example:443"), &tls.Config{ServerName: "api.good.example", RootCAs: w.trusted(),
			MinVersion: tls.VersionTLS12})
		must.Do(t, s.Handshake())
		return s
	}
	overTCP := func() *tls.Conn { return w.tunnel("api.good.example") }
	abrupt := func(c *tls.Conn) {
		must.Do(t, c.NetConn().(*sentConn).Conn.(*net.TCPConn).SetLinger(0))
		_ = c.NetConn().Close()
	}
	for name, c := range map[string]struct {
		open  func() *tls.Conn
		leave func(*tls.Conn)
	}{
		"close":                      {overTCP, func(c *tls.Conn) { _ = c.Close() }},
		"reset":                      {overTCP, abrupt},
		"half-close, then close":     {overTCP, func(c *tls.Conn) { halfClose(t, c); w.halfClosed(c); _ = c.Close() }},
		"half-close, then reset":     {overTCP, func(c *tls.Conn) { halfClose(t, c); w.halfClosed(c); abrupt(c) }},
		"by the gateway, close":      {overUnix, func(c *tls.Conn) { _ = c.Close() }},
		"by the gateway, half-close": {overUnix, func(c *tls.Conn) { halfClose(t, c); w.halfClosed(c); _ = c.Close() }},
	} {
		before := len(w.rows())
		conn := c.open()
		fmt.Fprint(conn, "GET /v1/items HTTP/1.1\r\nHost: api.good.example\r\n\r\n")
		take(t, asked, name+": it was asked")
		c.leave(conn)
		take(t, cancelled, name+": the request was cancelled")
		row := w.untilRows(func(rows []audit.Row) bool { return len(rows) == before+2 })[before+1]
		if row.Event != audit.EventProxyProxied || row.Decision != audit.DecisionProxied ||
			Reason(row.Reason) != ReasonUndelivered || row.Status != 0 {
			t.Errorf("%s: row %+v", name, row)
		}
	}
}

// What never left is refused: the client was gone before there was a connection.
func TestADepartureBeforeAnythingWasSentIsADenial(t *testing.T) {
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer l.Close()
	w := newWorldWith(t, false, func(c *Config) {
		c.Upstream.Resolve["api.good.example:443"] = netip.MustParseAddrPort(l.Addr().String())
	}, hello)
	conn := w.tunnel("api.good.example")
	fmt.Fprint(conn, "GET /v1/items HTTP/1.1\r\nHost: api.good.example\r\n\r\n")
	silent := must.Get(l.Accept())(t) // and never shakes hands
	defer silent.Close()
	_ = conn.Close()
	row := w.untilRows(func(rows []audit.Row) bool { return len(rows) == 2 })[1]
	if row.Event != audit.EventProxyRejected || row.Decision != audit.DecisionRejected ||
		Reason(row.Reason) != ReasonClientGone {
		t.Errorf("row %+v", row)
	}
}

// The row of a response that was not taken to its end has the upstream's status.
func TestAResponseThatIsNotTakenHasItsStatus(t *testing.T) {
	w := newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
		rw.WriteHeader(http.StatusAccepted)
		for r.Context().Err() == nil {
			_, _ = rw.Write(make([]byte, 64<<10))
		}
	})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r := must.Get(http.NewRequestWithContext(ctx, http.MethodGet, "https://api.good.example/v1/items", http.NoBody))(t)
	res := must.Get(w.client.Do(r))(t)
	_ = res.Body.Close()
	cancel()
	row := w.untilRows(func(rows []audit.Row) bool { return len(rows) == 2 })[1]
	if row.Event != audit.EventProxyProxied || Reason(row.Reason) != ReasonUndelivered ||
		row.Status != http.StatusAccepted {
		t.Errorf("row %+v", row)
	}
}
