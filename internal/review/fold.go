package review

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/ALRubinger/aileron/audit"
)

// waitingAfter is how long a request is under way before tail -f shows that it is.
const waitingAfter = 2 * time.Second

// maxHeldIntents bounds the intents that a Fold holds. Beyond it they are shown at once.
const maxHeldIntents = 4096

// Fold makes one line of a request as rows come: its intent is held, and shown if it has waited for waitingAfter.
type Fold struct {
	Rows  bool // each row is shown
	Show  func(r audit.Row, waiting bool) error
	Flush func() error // of what was shown

	mu     sync.Mutex
	held   map[string]heldIntent // by request
	failed error                 // of Watch
}

type heldIntent struct {
	row  audit.Row
	came time.Time
}

// Add takes the next row.
func (f *Fold) Add(r audit.Row) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	request, _ := r.Fields["request_id"].(string) // a log that was tampered with may have anything there
	if f.failed != nil {
		return f.failed
	}
	if f.Rows {
		return f.Show(r, false)
	}
	if r.Event != audit.EventProxyStarted || request == "" || len(f.held) >= maxHeldIntents {
		delete(f.held, request)
		return f.Show(r, r.Event == audit.EventProxyStarted)
	}
	if f.held == nil {
		f.held = map[string]heldIntent{}
	}
	f.held[request] = heldIntent{r, time.Now()}
	return nil
}

// flushEvery is how often tail -f prints what came. The columns of what came together are aligned.
const flushEvery = 50 * time.Millisecond

// Watch shows what waits, and flushes, until the function that it returns is called.
func (f *Fold) Watch(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var done sync.WaitGroup
	done.Go(func() {
		tick := time.NewTicker(flushEvery)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				f.showWaiting(time.Time{})
				return
			case now := <-tick.C:
				f.showWaiting(now.Add(-waitingAfter))
			}
		}
	})
	return func() { cancel(); done.Wait() }
}

// showWaiting shows the intents that came before a time, in their order, and flushes.
func (f *Fold) showWaiting(before time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var due []audit.Row
	for request, h := range f.held {
		if h.came.Before(before) {
			due = append(due, h.row)
			delete(f.held, request)
		}
	}
	slices.SortFunc(due, func(a, b audit.Row) int { return cmp.Compare(a.Seq, b.Seq) })
	for _, r := range due {
		f.failed = errors.Join(f.failed, f.Show(r, true))
	}
	f.failed = errors.Join(f.failed, f.Flush())
}
