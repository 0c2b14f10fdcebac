package audit

import (
	"errors"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// turnName is the file beside the database on which writers queue. It is empty, and may be removed at any time.
const turnName = "audit.lock"

// turnTimeout is how long a fold waits for the sessions before it. It is far more than they need: each folds a bounded
// number of rows at a time.
const turnTimeout = 10 * time.Second

// takeTurn waits at most for span until the processes that asked earlier have written to the database, and returns a
// function that ends the turn.
//
// SQLite's own lock is not fair: a process that does not get it sleeps, for up to 100 ms, and the lock is free or not
// when it wakes up, so that among many sessions some never get it. The kernel keeps a queue of those that wait for a
// lock of a file. The queue is for fairness only: SQLite's lock protects the database, and a process that cannot open
// the file, or does not get its turn in time, writes without it.
func (l *Log) takeTurn(span time.Duration) (end func()) {
	f, err := os.OpenFile(filepath.Join(filepath.Dir(l.path), turnName), os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return func() {}
	}
	if err := lockTurn(f, unix.F_OFD_SETLK); err == nil || !errors.Is(err, unix.EAGAIN) {
		return func() { _ = f.Close() } // which releases its locks
	}
	got, late := make(chan struct{}), make(chan struct{})
	go func() { // it ends when the processes before have had their turns
		_ = lockTurn(f, unix.F_OFD_SETLKW)
		select {
		case got <- struct{}{}:
		case <-late:
			_ = f.Close()
		}
	}()
	timer := time.NewTimer(span)
	defer timer.Stop()
	select {
	case <-got:
		return func() { _ = f.Close() }
	case <-timer.C:
		close(late)
		return func() {}
	}
}

// lockTurn locks two bytes of f. All who wait are in the queue for the first byte, except one, which has it and waits
// for the second: a process that ends its turn and asks for another one at once cannot overtake those that wait.
func lockTurn(f *os.File, how int) error {
	queue := unix.Flock_t{Type: unix.F_WRLCK, Start: 0, Len: 1}
	turn := unix.Flock_t{Type: unix.F_WRLCK, Start: 1, Len: 1}
	err := lockRange(f, how, queue)
	if err == nil {
		err = lockRange(f, how, turn)
		queue.Type = unix.F_UNLCK
		_ = lockRange(f, unix.F_OFD_SETLK, queue)
	}
	return err
}

func lockRange(f *os.File, how int, span unix.Flock_t) error {
	for {
		err := unix.FcntlFlock(f.Fd(), how, &span)
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}
