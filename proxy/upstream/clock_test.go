package upstream

import (
	"net"
	"testing"
	"time"
	"unsafe"

	"github.com/ALRubinger/aileron/e2e/must"
)

// setWall returns t as if the wall clock had been set by d since, and the
// monotonic one had gone on: seconds of a wall reading begin at bit 30.
func setWall(t time.Time, d time.Duration) time.Time {
	// Package time has no other way to make such a time.
	*(*uint64)(unsafe.Pointer(&t)) -= uint64(d/time.Second) << 30
	return t
}

// The monotonic clock stands still while a laptop is suspended: what a
// connection's host has done meanwhile is shown by the other clock only. That
// one may be set back, and the connection is not young again for it.
func TestAConnectionThatWasSuspendedIsNotUsedAgain(t *testing.T) {
	if at := setWall(time.Now(), time.Hour); time.Since(at) > time.Minute || time.Since(at.Round(0)) < time.Hour {
		t.Fatalf("the times of this test are not what it needs: %v, %v", time.Since(at), time.Since(at.Round(0)))
	}
	u, err := New(Options{Idle: time.Minute})
	must.Do(t, err)
	defer u.Close()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must.Do(t, err)
	defer listener.Close()
	raw, err := net.Dial("tcp", listener.Addr().String())
	must.Do(t, err)
	c := u.pool(u.Key("bearer", "", "secret")).h1.newConn("key", raw, &countedConn{Conn: raw})
	defer c.close()
	for name, at := range map[string]struct {
		since time.Time
		alive bool
	}{
		"just now":                        {time.Now(), true},
		"before an hour of sleep":         {setWall(time.Now(), time.Hour), false},
		"just now, clock set back":        {setWall(time.Now(), -24*time.Hour), true},
		"two minutes ago, clock set back": {setWall(time.Now().Add(-2*time.Minute), -24*time.Hour), false},
	} {
		c.idleSince = at.since
		if got := c.alive(); got != at.alive {
			t.Errorf("put back %s: alive = %v, want %v", name, got, at.alive)
		}
	}
}
