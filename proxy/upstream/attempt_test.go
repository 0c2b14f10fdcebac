package upstream

import (
	"testing"
	"testing/synctest"
	"time"
)

// The limit is for the head of a response: what comes after it may take longer.
func TestTheLimitOfAnAttemptEndsWithTheHead(t *testing.T) {
	for name, c := range map[string]struct {
		do   func(a *attempt)
		late bool
	}{
		"no head":                        {(*attempt).beginWait, true},
		"a head":                         {func(a *attempt) { a.beginWait(); a.endWait() }, false},
		"a head before the request left": {func(a *attempt) { a.endWait(); a.beginWait() }, false},
		"the request left twice":         {func(a *attempt) { a.beginWait(); a.beginWait(); a.endWait() }, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			cancelled := false
			a := &attempt{limit: time.Second, cancel: func() { cancelled = true }}
			c.do(a)
			<-time.After(2 * time.Second)
			synctest.Wait()
			if got := a.late.Load(); got != c.late || cancelled != c.late {
				t.Errorf("%s: late %v and cancelled %v, want %v", name, got, cancelled, c.late)
			}
		})
	}
}
