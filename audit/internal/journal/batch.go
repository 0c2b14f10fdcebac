package journal

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ALRubinger/aileron/internal/system"
)

// batch is the frames that are written together.
type batch struct {
	frames  []byte // behind space for the sum before them
	soon    []int  // where those begin that nothing waits for
	waiting []*waiter
}

// waiter is a goroutine that waits until its frame is written.
type waiter struct{ result chan error }

// errLead is sent to a waiter that has to write the next batch, with its own row in it.
var errLead = errors.New("lead")

// await waits until the batch with the row that was added last is written. j.Mu is locked.
func (j *Journal) await(ctx context.Context) error {
	w := j.newWaiter()
	j.next.waiting = append(j.next.waiting, w)
	j.Mu.Unlock()
	var err error
	select {
	case err = <-w.result:
	case <-ctx.Done():
		if j.withdraw(w) {
			return ctx.Err()
		}
		err = <-w.result // it is being written, or has to be by this goroutine
	}
	j.Mu.Lock()
	j.free = append(j.free, w)
	if errors.Is(err, errLead) {
		return j.lead()
	}
	j.Mu.Unlock()
	return err
}

// newWaiter returns a waiter that is not in use. j.Mu is locked.
func (j *Journal) newWaiter() *waiter {
	if n := len(j.free); n > 0 {
		w := j.free[n-1]
		j.free = j.free[:n-1]
		return w
	}
	return &waiter{result: make(chan error, 1)}
}

// withdraw removes w from those that wait for the next batch, and reports whether it was there.
func (j *Journal) withdraw(w *waiter) bool {
	j.Mu.Lock()
	defer j.Mu.Unlock()
	i := slices.Index(j.next.waiting, w)
	if i < 0 {
		return false
	}
	j.next.waiting = slices.Delete(j.next.waiting, i, i+1)
	j.free = append(j.free, w)
	return true
}

// lead writes the next batch and returns how that went. Batches behind it are written by a goroutine that waits for
// them, or else by this one. j.Mu is locked and writing set when it is called; both are released.
func (j *Journal) lead() (result error) {
	for first := true; ; first = false {
		err := j.writeBatch()
		if first {
			result = err
		}
		if len(j.next.frames) == 0 && len(j.next.waiting) == 0 {
			break
		}
		if len(j.next.waiting) > 0 {
			w := j.next.waiting[0]
			j.next.waiting = slices.Delete(j.next.waiting, 0, 1)
			w.result <- errLead
			j.Mu.Unlock()
			return result
		}
	}
	j.writing = false
	j.Mu.Unlock()
	return result
}

// writeBatch writes the next batch. j.Mu is locked when it is called and when it returns, and not while it writes.
func (j *Journal) writeBatch() error {
	b := j.next
	j.next, j.spare = j.spare, batch{}
	if len(b.frames) == 0 {
		j.settle(b, nil)
		return nil
	}
	at, sum := j.Written, j.sum
	j.inflight = int64(len(b.frames) - framePrefix)
	j.Mu.Unlock()

	rows := chainFrames(b.frames, &sum)
	_, err := j.File.WriteAt(b.frames[framePrefix:], at)
	if err == nil && j.Sync {
		err = system.SyncData(j.File)
	}
	if err != nil {
		err = fmt.Errorf("write the journal: %w", err)
		_, _ = j.File.WriteAt(make([]byte, FrameHead), at) // no reader finds a part of the batch
		if rows := parseSoon(b); len(rows) > 0 {
			j.Failed(rows)
		}
	}

	j.Mu.Lock()
	j.inflight, j.failing = 0, err != nil
	if err == nil {
		if j.Rows == 0 {
			j.oldest = time.Now()
		}
		j.Written, j.sum, j.Rows = at+int64(len(b.frames)-framePrefix), sum, j.Rows+rows
		j.Behind.Store(j.Written-j.Folded > j.FoldFirst)
		j.Wake(j.Written-j.Folded > foldSoon)
	}
	j.settle(b, err)
	return err
}

// settle sends err to the goroutines that wait for b, and keeps its slices for another batch. j.Mu is locked.
func (j *Journal) settle(b batch, err error) {
	for _, w := range b.waiting {
		w.result <- err
	}
	if cap(b.frames) > maxBatch {
		b.frames = nil
	}
	j.spare = batch{b.frames[:0], b.soon[:0], b.waiting[:0]}
}
