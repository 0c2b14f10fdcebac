package upstream

import (
	"fmt"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ALRubinger/aileron/e2e/must"
)

// An exchange that outlives its grants brings no pool back.
func TestARetiredValueGetsNoPool(t *testing.T) {
	u, err := New(Options{})
	must.Do(t, err)
	key := u.Key("bearer", "", "secret")
	u.Keep(key)
	if first, second := u.pool(key), u.pool(key); first != second {
		t.Error("one value has two pools")
	}
	u.Keep()
	if p := u.pool(key); p == u.pool(key) || !p.retired || len(u.pools) != 0 {
		t.Errorf("a retired value has a pool that is kept: %v", u.pools)
	}
}

// slowConn is a connection whose Close takes until release.
type slowConn struct {
	net.Conn
	release chan struct{}
}

func (c *slowConn) Close() error { <-c.release; return nil }

func TestTheUpstreamsEndWaitsForItsConnections(t *testing.T) {
	for name, end := range map[string]func(*Client, *h1Pool){
		"at the end":   func(*Client, *h1Pool) {},
		"when retired": func(u *Client, _ *h1Pool) { u.Keep() },
		"when idle":    func(u *Client, l *h1Pool) { <-time.After(2 * u.opts.Idle) },
		"when full": func(_ *Client, l *h1Pool) {
			l.mu.Lock()
			full := l.remove(func(*persistConn) bool { return true })
			l.n = maxIdle
			l.mu.Unlock()
			for _, c := range full {
				l.put(c)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				u, err := New(Options{})
				must.Do(t, err)
				key := u.Key("bearer", "", "secret")
				u.Keep(key)
				l := u.pool(key).h1
				release := make(chan struct{})
				for i := range 3 {
					l.put(l.newConn(fmt.Sprint(i%2), &slowConn{release: release}, &countedConn{}))
				}
				end(u, l)
				closed := make(chan struct{})
				go func() { u.Close(); close(closed) }()
				synctest.Wait()
				select {
				case <-closed:
					t.Error("the upstream ended while its connections were closing")
				default:
				}
				close(release)
				<-closed
			})
		})
	}
}

func TestAKeyDependsOnTheValueAlone(t *testing.T) {
	u, err := New(Options{})
	must.Do(t, err)
	keys := map[Key]string{}
	for name, parts := range map[string][]string{
		"plain": {"bearer", "", "old"}, "other": {"bearer", "", "new"}, "user": {"bearer", "a", "old"},
		"other user": {"bearer", "b", "old"}, "moved boundary": {"bearer", "bo", "ld"}, "other kind": {"basic", "", "old"},
	} {
		key := u.Key(parts...)
		if twin, ok := keys[key]; ok {
			t.Errorf("%s and %s share a pool", name, twin)
		}
		keys[key] = name
		if again := u.Key(parts...); again != key {
			t.Errorf("%s has two pools", name)
		}
	}
	if other, err := New(Options{}); err != nil || other.Key("bearer", "", "old") == u.Key("bearer", "", "old") {
		t.Errorf("two clients derive one key from one value (%v)", err)
	}
}

func TestMoreClientsKeepMoreConnections(t *testing.T) {
	for clients, want := range map[int][2]int{0: {maxIdle, maxIdlePerHost}, 1024: {maxIdle, maxIdlePerHost},
		10_000: {2500, 1250}} {
		o := &Options{Clients: clients}
		if all, perHost := o.idleBounds(); all != want[0] || perHost != want[1] {
			t.Errorf("with %d clients, %d connections may be idle, and %d of one host; want %v", clients, all, perHost, want)
		}
	}
}
