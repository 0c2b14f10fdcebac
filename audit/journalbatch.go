package audit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sys/unix"
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

// await waits until the batch with the row that was added last is written. j.mu is locked.
func (j *journal) await(ctx context.Context) error {
	w := j.newWaiter()
	j.next.waiting = append(j.next.waiting, w)
	j.mu.Unlock()
	var err error
	select {
	case err = <-w.result:
	case <-ctx.Done():
		if j.withdraw(w) {
			return ctx.Err()
		}
		err = <-w.result // it is being written, or has to be by this goroutine
	}
	j.mu.Lock()
	j.free = append(j.free, w)
	if errors.Is(err, errLead) {
		return j.lead()
	}
	j.mu.Unlock()
	return err
}

// newWaiter returns a waiter that is not in use. j.mu is locked.
func (j *journal) newWaiter() *waiter {
	if n := len(j.free); n > 0 {
		w := j.free[n-1]
		j.free = j.free[:n-1]
		return w
	}
	return &waiter{result: make(chan error, 1)}
}

// withdraw removes w from those that wait for the next batch, and reports whether it was there.
func (j *journal) withdraw(w *waiter) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	i := slices.Index(j.next.waiting, w)
	if i < 0 {
		return false
	}
	j.next.waiting = slices.Delete(j.next.waiting, i, i+1)
	j.free = append(j.free, w)
	return true
}

// lead writes the next batch and returns how that went. Batches behind it are written by a goroutine that waits for
// them, or else by this one. j.mu is locked and writing set when it is called; both are released.
func (j *journal) lead() (result error) {
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
			j.mu.Unlock()
			return result
		}
	}
	j.writing = false
	j.mu.Unlock()
	return result
}

// writeBatch writes the next batch. j.mu is locked when it is called and when it returns, and not while it writes.
func (j *journal) writeBatch() error {
	b := j.next
	j.next, j.spare = j.spare, batch{}
	if len(b.frames) == 0 {
		j.settle(b, nil)
		return nil
	}
	at, sum := j.written, j.sum
	j.inflight = int64(len(b.frames) - framePrefix)
	j.mu.Unlock()

	rows := chainFrames(b.frames, &sum)
	_, err := j.file.WriteAt(b.frames[framePrefix:], at)
	if err == nil && j.sync {
		err = unix.Fdatasync(int(j.file.Fd()))
	}
	if err != nil {
		err = fmt.Errorf("write the journal: %w", err)
		_, _ = j.file.WriteAt(make([]byte, frameHead), at) // no reader finds a part of the batch
		if rows := parseSoon(b); len(rows) > 0 {
			j.failed(rows)
		}
	}

	j.mu.Lock()
	j.inflight, j.failing = 0, err != nil
	if err == nil {
		if j.rows == 0 {
			j.oldest = time.Now()
		}
		j.written, j.sum, j.rows = at+int64(len(b.frames)-framePrefix), sum, j.rows+rows
		j.behind.Store(j.written-j.folded > j.foldFirst)
		j.wake(j.written-j.folded > foldSoon)
	}
	j.settle(b, err)
	return err
}

// settle sends err to the goroutines that wait for b, and keeps its slices for another batch. j.mu is locked.
func (j *journal) settle(b batch, err error) {
	for _, w := range b.waiting {
		w.result <- err
	}
	if cap(b.frames) > maxBatch {
		b.frames = nil
	}
	j.spare = batch{b.frames[:0], b.soon[:0], b.waiting[:0]}
}
