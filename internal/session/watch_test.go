package session

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ALRubinger/aileron/e2e/harness"
	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/proxy/api"
	"github.com/ALRubinger/aileron/spec/store"
)

// following is a follower of which a test decides what it reports.
type following struct {
	err             error
	moved, complete bool
	compared        atomic.Int64
}

func (f *following) Follow() error  { return f.err }
func (f *following) Complete() bool { return f.complete }
func (f *following) Moved() bool    { f.compared.Add(1); return f.moved }

// A session that rests does not look at its files many times a second, and sees a change at once.
func TestAnIdleSessionDoesNotLook(t *testing.T) {
	for name, c := range map[string]struct {
		follower  *following
		unsettled int // looks that do not settle
		idle      int // most looks in a minute without a change
		least     int
		within    time.Duration // a reported change has an effect
	}{
		"the kernel reports": {follower: &following{}, idle: 10, within: 100 * time.Millisecond},
		"and another directory": {follower: &following{complete: true}, idle: 10,
			within: 100 * time.Millisecond},
		"it cannot": {follower: &following{err: errors.New("no space")}, idle: 201, least: 190,
			within: time.Second},
		"another directory": {follower: &following{moved: true}, idle: 90, least: 80, within: time.Second},
		"what cannot be read": {follower: &following{}, unsettled: 100, idle: 110, least: 100,
			within: 100 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var mu sync.Mutex // of both
				looks, last := 0, time.Time{}
				seen := func() (int, time.Time) {
					synctest.Wait()
					mu.Lock()
					defer mu.Unlock()
					return looks, last
				}
				changes := make(chan struct{}, 1)
				ctx, cancel := context.WithCancel(t.Context())
				go follow(ctx, c.follower, changes, func(context.Context) bool {
					mu.Lock()
					defer mu.Unlock()
					looks, last = looks+1, time.Now()
					return looks > c.unsettled
				})
				<-time.After(time.Minute)
				if n, _ := seen(); n > c.idle || n < c.least {
					t.Errorf("%d looks in a minute, want %d to %d", n, c.least, c.idle)
				}
				changed := time.Now()
				changes <- struct{}{}
				<-time.After(time.Second)
				_, at := seen()
				if took := at.Sub(changed); took < 0 || took > c.within {
					t.Errorf("the change is seen after %v, want %v at most", took, c.within)
				}
				if n := c.follower.compared.Load(); n > 0 && c.follower.complete {
					t.Errorf("the directories were compared %d times, although each change of them is reported", n)
				}
				cancel()
			})
		})
	}
}

// A connector that is installed is granted, where there was no store too, and not when it is removed.
func TestAChangeIsSeenWithoutALook(t *testing.T) {
	o := newOptions(t)
	must.Do(t, os.RemoveAll(filepath.Join(o.Home, "store")))
	s := open(t, o)
	must.Do(t, s.Serve(t.Context(), false))
	granted := func() bool { return len(api.Describe(s.plane).Hosts) > 0 }
	see := func(what string, want bool) {
		t.Helper()
		if !harness.Poll(harness.Patience, time.Millisecond, func() bool { return granted() == want }) {
			t.Errorf("%s: granted is %v, want %v", what, !want, want)
		}
	}
	install(t, o.Home)
	see("a connector is installed", true)
	st := must.Get(store.Open(filepath.Join(o.Home, "store")))(t)
	must.Get(st.Remove(string(githubFQN), "", nil))(t)
	see("it is removed", false)
	install(t, o.Home)
	see("it is installed again", true)
}
