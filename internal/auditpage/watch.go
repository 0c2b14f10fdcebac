package auditpage

import (
	"context"
	"errors"
	"io/fs"
	"sync"
	"time"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/internal/auditlog"
	"github.com/ALRubinger/aileron/internal/hint"
)

// watchEvery is the interval at which the log is looked at, and so the least time between two messages of a stream: a
// page asks for new rows once in that time, however many there are.
const watchEvery = 100 * time.Millisecond

// settleEvery is the interval at which rows of killed sessions are looked for.
const settleEvery = 2 * time.Second

// now is the state of the log that a page shows.
type now struct {
	Oldest  int64  `json:"oldest"`
	Newest  int64  `json:"newest"`            // the number of the newest row; 0: there is none
	Epoch   int    `json:"epoch"`             // another number when the log is another one
	Message string `json:"message,omitempty"` // why the log cannot be read, or only in part
	Hint    string `json:"hint,omitempty"`
	Waiting int    `json:"waiting,omitempty"` // questions that wait for a decision
	Asked   uint32 `json:"asked,omitempty"`   // another number when the list of questions is another one
}

// watch looks at the log for all pages.
type watch struct {
	logs *logs
	mu   sync.Mutex
	now  now
	turn int           // of the file; for look only
	next chan struct{} // closed at the next change
}

func newWatch(l *logs) *watch { return &watch{logs: l, next: make(chan struct{})} }

// state returns the state, and a channel that is closed when it changes.
func (w *watch) state() (now, <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now, w.next
}

func (w *watch) set(n now) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n.Waiting, n.Asked = w.now.Waiting, w.now.Asked
	w.change(n)
}

// note changes what is known of the questions.
func (w *watch) note(waiting int, asked uint32) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := w.now
	n.Waiting, n.Asked = waiting, asked
	w.change(n)
}

// change makes n the state. w.mu is held.
func (w *watch) change(n now) {
	if w.now != n {
		w.now = n
		close(w.next)
		w.next = make(chan struct{})
	}
}

// run looks at the log until ctx ends.
func (w *watch) run(ctx context.Context, report func(string)) {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	settled := time.Now()
	for {
		before, _ := w.state()
		after := w.look(ctx, before)
		if ctx.Err() != nil {
			return
		}
		if w.set(after); after.Message != "" && after.Message != before.Message {
			report(after.Message)
		}
		if time.Since(settled) >= settleEvery {
			settled = time.Now()
			audit.SettleKilled(w.logs.path)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// look reads the log and returns its state. before is the state that it returned last.
func (w *watch) look(ctx context.Context, before now) now {
	after := now{Epoch: before.Epoch, Oldest: before.Oldest, Newest: before.Newest}
	l, done, err := w.logs.open()
	if errors.Is(err, fs.ErrNotExist) {
		if before.Newest > 0 {
			after = now{Epoch: before.Epoch + 1}
		}
		after.Message = "there is no audit log: it begins with the next session"
		return after
	}
	if err == nil {
		defer done()
		after.Oldest, after.Newest, err = ends(ctx, l.Log)
	}
	if err != nil {
		w.logs.drop()
		after.Oldest, after.Newest = before.Oldest, before.Newest
		after.Message, after.Hint = describe(err)
		return after
	}
	if l.turn != w.turn || after.Newest < before.Newest { // it was replaced or restored
		w.turn = l.turn
		after.Epoch++
	}
	if l.warning != nil {
		after.Message, after.Hint = describe(l.warning)
	}
	return after
}

// ends returns the numbers of the oldest and the newest row, 0 if the log has no rows.
func ends(ctx context.Context, l *audit.Log) (oldest, newest int64, err error) {
	err = l.EachSeq(ctx, audit.Filter{Limit: 1}, func(seq int64) error { newest = seq; return nil })
	if err != nil || newest == 0 {
		return 0, 0, err
	}
	err = l.Each(ctx, audit.Filter{Limit: 1}, func(r audit.Row) error { oldest = r.Seq; return nil })
	return oldest, newest, err
}

// describe returns the message of an error and its hint, each as one bounded line.
func describe(err error) (message, advice string) {
	err = auditlog.Hint(err)
	return bounded(err.Error(), maxMessage), bounded(hint.Of(err), maxMessage)
}

// maxMessage bounds the message and the hint of an error, in bytes.
const maxMessage = 512
