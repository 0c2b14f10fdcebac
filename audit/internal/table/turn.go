package table

import (
	"errors"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ALRubinger/aileron/internal/system"
)

// TurnName is the file beside the database on which writers queue. It is empty, and may be removed at any time.
const TurnName = "audit.lock"

const (
	// TurnTimeout is how long a fold waits for the sessions before it. It is far more than they need: each folds a
	// bounded number of rows at a time.
	TurnTimeout = 10 * time.Second
	// MaxAsking bounds the goroutines of all processes that wait for a lock of the file: each has a thread, and the
	// process that has the lock may be stopped for as long as someone likes.
	MaxAsking = 64
)

// ErrNoTurn is passed to Options.OnTurn if another process does not end its turn.
var ErrNoTurn = errors.New("another process does not end its turn at " + TurnName)

// Turns is where a log asks for its turn.
type Turns struct {
	// Owned by the leader.
	Span   time.Duration // how long a session waits; 0: TurnTimeout
	Missed bool          // the last turn did not come: the next ones are not waited for at length

	Mu     sync.Mutex
	Asking bool          // a goroutine waits for the locks; there is no second one
	wanted bool          // a commit waits for it
	got    chan *os.File // the file with the locks, for the commit
}

// Take returns the file with the locks of the turn.
func (q *Turns) Take(path string, span time.Duration) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	if err := lockTurn(f, system.SetLock); err == nil {
		return f, nil
	} else if !errors.Is(err, unix.EAGAIN) {
		_ = f.Close()
		return nil, &os.PathError{Op: "lock", Path: path, Err: err}
	}
	if !q.ask(f) {
		return nil, ErrNoTurn
	}
	timer := time.NewTimer(span)
	defer timer.Stop()
	select {
	case f := <-q.got:
		return f, nil
	case <-timer.C:
	}
	q.Mu.Lock()
	defer q.Mu.Unlock()
	if q.wanted {
		q.wanted = false
		return nil, ErrNoTurn
	}
	return <-q.got, nil // it came at the last moment
}

// ask makes the goroutine that waits for the locks of f, unless there is one from an earlier commit: a process in its
// turn that is stopped must not make each commit leave a goroutine, a thread and a file. It reports whether there is
// one.
func (q *Turns) ask(f *os.File) bool {
	q.Mu.Lock()
	defer q.Mu.Unlock()
	if q.Asking || !reserveAsking(f) {
		_ = f.Close()
	} else {
		q.Asking, q.got = true, make(chan *os.File, 1)
		go q.wait(f)
	}
	q.wanted = q.Asking
	return q.Asking
}

// wait waits for the locks of f. It ends when the processes before have had their turns.
func (q *Turns) wait(f *os.File) {
	_ = lockTurn(f, system.SetLockWait)
	q.Mu.Lock()
	defer q.Mu.Unlock()
	q.Asking = false
	if !q.wanted {
		_ = f.Close()
		return
	}
	q.wanted = false
	q.got <- f
}

// reserveAsking locks one of MaxAsking bytes of f, behind those of the turn, and reports whether one was free.
// Closing f releases it.
func reserveAsking(f *os.File) bool {
	for i := range int64(MaxAsking) {
		if lockRange(f, system.SetLock, unix.Flock_t{Type: unix.F_WRLCK, Start: 2 + i, Len: 1}) == nil {
			return true
		}
	}
	return false
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
		_ = lockRange(f, system.SetLock, queue)
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
