package front

import (
	"bufio"
	"crypto/tls"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/ALRubinger/aileron/ca"
	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/proxy"
)

// setWall returns t as if the wall clock had been set by d since, and the
// monotonic one had gone on: seconds of a wall reading begin at bit 30.
func setWall(t time.Time, d time.Duration) time.Time {
	*(*uint64)(unsafe.Pointer(&t)) -= uint64(d/time.Second) << 30
	return t
}

// The wall clock may be set while a connection is open: by a day ahead it is
// not idle, and by a day back it is not in use.
func TestActivityIsMeasuredByTheMonotonicClock(t *testing.T) {
	for _, set := range []time.Duration{24 * time.Hour, -24 * time.Hour} {
		a := &activity{began: setWall(time.Now(), set)}
		if idle := a.idle(); idle < 0 || idle > time.Hour {
			t.Errorf("the clock was set by %v: idle for %v", set, idle)
		}
		a.mark()
		if idle := a.idle(); idle < 0 || idle > time.Hour {
			t.Errorf("the clock was set by %v before bytes moved: idle for %v", set, idle)
		}
	}
}

// A clock that is set while a session runs ends no tunnel. A client that comes
// while it is outside the CA's lifetime cannot be served, and the row has the reason.
func TestAClockOutsideTheCAsLifetimeIsNamed(t *testing.T) {
	var ahead atomic.Int64
	var log must.Output
	authority, err := ca.NewSession(ca.Options{Session: "clock",
		Now: func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }})
	must.Do(t, err)
	s := newSession(t, Listener{}, func(c *proxy.Config) {
		c.CA, c.Log = authority, slog.New(slog.NewTextHandler(&log, nil))
	})
	handshake := func() (*tls.Conn, error) {
		conn := tls.Client(s.connect("api.good.example:443"),
			&tls.Config{ServerName: "api.good.example", RootCAs: s.trusted(), MinVersion: tls.VersionTLS12})
		return conn, conn.Handshake()
	}
	tunnel, err := handshake()
	must.Do(t, err)
	reader := bufio.NewReader(tunnel)
	for _, jump := range []time.Duration{24 * time.Hour, -24 * time.Hour} {
		ahead.Store(int64(jump))
		before := len(s.list())
		if _, err := handshake(); err == nil {
			t.Fatalf("%v: a client is served on a new connection", jump)
		}
		row := s.until(before + 1)[before]
		if proxy.Reason(row.Reason) != proxy.ReasonCA || row.Status != 503 || row.Host != "api.good.example" {
			t.Errorf("%v: the row says %s, %d for %s", jump, row.Reason, row.Status, row.Host)
		}
		must.Get(io.WriteString(tunnel, "GET / HTTP/1.1\r\nHost: api.good.example\r\n\r\n"))(t)
		res, err := http.ReadResponse(reader, nil)
		if err != nil || res.StatusCode != 403 {
			t.Fatalf("%v: in the tunnel that is there: %v", jump, err)
		}
		_, _ = io.Copy(io.Discard, res.Body)
		ahead.Store(0)
		must.Get(handshake())(t)
	}
	if n := strings.Count(log.String(), "no client can be served"); n != 1 {
		t.Errorf("the log has %d lines about it, want one:\n%s", n, log.String())
	}
}
