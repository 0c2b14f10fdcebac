package proxy

import (
	"bytes"
	"crypto/x509"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/ALRubinger/aileron/ca"
)

// setClock returns a clock that a test sets.
func setClock() (now func() time.Time, move func(time.Duration)) {
	var ahead atomic.Int64
	return func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) },
		func(d time.Duration) { ahead.Add(int64(d)) }
}

// lockedBuffer is a log that may be written to and read at once.
type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// A clock that is set while a session runs ends no tunnel. A client that comes
// while it is outside the CA's lifetime cannot be served, and the row has the reason.
func TestAClockOutsideTheCAsLifetimeIsNamed(t *testing.T) {
	now, move := setClock()
	var log lockedBuffer
	session, err := ca.NewSession(ca.Options{Session: "clock", Now: now})
	must(t, err)
	w := newWorldWith(t, false, func(c *Config) { c.CA, c.Log = session, slog.New(slog.NewTextHandler(&log, nil)) },
		func(rw http.ResponseWriter, _ *http.Request) { _, _ = rw.Write([]byte("ok")) })
	trusted := x509.NewCertPool()
	trusted.AddCert(session.Root())
	w.client.Transport.(*http.Transport).TLSClientConfig.RootCAs = trusted
	ok := func(when string) {
		t.Helper()
		if res, body := w.do("GET", "https://api.good.example/v1/items", ""); res.StatusCode != 200 {
			t.Fatalf("%s: %d %s", when, res.StatusCode, body)
		}
	}
	ok("before")
	for when, jump := range map[string]time.Duration{"a day ahead": 24 * time.Hour, "a day back": -24 * time.Hour} {
		move(jump)
		ok(when + ", in the tunnel that is there")
		w.client.CloseIdleConnections()
		rows := len(w.outcomes())
		for range 3 {
			if res, err := w.client.Get("https://api.good.example/v1/items"); err == nil {
				_ = res.Body.Close()
				t.Fatalf("%s: a client got %d on a new connection", when, res.StatusCode)
			}
		}
		w.eventually(func() bool { return len(w.outcomes()) == rows+3 })
		for _, row := range w.outcomes()[rows:] {
			if Reason(row.Reason) != reasonCA || row.Status != 503 || row.Host != "api.good.example" {
				t.Errorf("%s: the row says %s, %d for %s", when, row.Reason, row.Status, row.Host)
			}
		}
		move(-jump)
		ok(when + ", and set right again")
	}
	if n := strings.Count(log.String(), "no client can be served"); n != 1 {
		t.Errorf("the log has %d lines about it, want one:\n%s", n, log.String())
	}
}

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
