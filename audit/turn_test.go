//go:build linux

package audit

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ALRubinger/aileron/audit/internal/chain"
	"github.com/ALRubinger/aileron/audit/internal/journal"
	"github.com/ALRubinger/aileron/audit/internal/table"
	"github.com/ALRubinger/aileron/e2e/must"
)

// isQueued reports whether a process waits for its turn, or has it.
func isQueued(t *testing.T, home string, from int64) bool {
	t.Helper()
	f, err := os.Open(filepath.Join(home, table.TurnName))
	if err != nil {
		return false
	}
	defer f.Close()
	span := unix.Flock_t{Type: unix.F_WRLCK, Start: from, Len: 1}
	must.Do(t, unix.FcntlFlock(f.Fd(), unix.F_OFD_GETLK, &span))
	return span.Type != unix.F_UNLCK
}

// isWaiting reports whether a goroutine waits for the locks. The writer's attempt to take them at once, which locks the
// first byte for a moment, is over then.
func isWaiting(q *table.Turns) bool {
	q.Mu.Lock()
	defer q.Mu.Unlock()
	return q.Asking
}

// A writer that has had its turn cannot have another one before those that wait.
func TestWritersTakeTurns(t *testing.T) {
	home := t.TempDir()
	l := &Log{path: filepath.Join(home, databaseName)}
	for range 50 {
		var mu sync.Mutex
		var order []string
		end, other := l.takeTurn(time.Hour), &Log{path: l.path}
		var others sync.WaitGroup
		others.Go(func() {
			end := other.takeTurn(time.Hour)
			mu.Lock()
			order = append(order, "other")
			mu.Unlock()
			end()
		})
		poll(t, "the other writer does not wait", func() bool { return isWaiting(&other.turns) && isQueued(t, home, 0) })
		end()
		end = l.takeTurn(time.Hour)
		mu.Lock()
		order = append(order, "first again")
		mu.Unlock()
		end()
		others.Wait()
		if order[0] != "other" {
			t.Fatalf("the turns are %q", order)
		}
	}
	poll(t, "a turn does not end", func() bool { return !isQueued(t, home, 0) && !isQueued(t, home, 1) })
}

// A process that is stopped in its turn does not keep others from writing, and neither does a file that is none.
func TestATurnThatDoesNotComeIsNoObstacle(t *testing.T) {
	home := t.TempDir()
	l := must.Get(Open(filepath.Join(home, databaseName), Options{}))(t)
	defer closeLog(t, l)
	end := (&Log{path: l.path}).takeTurn(time.Hour)
	l.lockWait.Long = time.Millisecond
	appendNumbered(t, l, "mine", 0)
	end()
	poll(t, "the turn that came late does not end", func() bool { return !isQueued(t, home, 1) })
	file := filepath.Join(home, table.TurnName)
	must.Do(t, errors.Join(os.Remove(file), os.Mkdir(file, 0o700)))
	appendNumbered(t, l, "mine", 1)
}

// While another process holds a lock on the database, requests are served: their rows are in the journal. That is
// reported once. Beyond the bound of the journal requests are refused, and afterwards the log has each row once.
func TestALockedDatabaseIsNoOutageOfTheJournal(t *testing.T) {
	for _, w := range lockedHomes() {
		t.Run(w.name, func(t *testing.T) {
			home, session := t.TempDir(), NewID()
			path := filepath.Join(home, databaseName)
			outages := make(chan Outage, 16)
			history(t, home, "before", 3)
			l, err := Open(path, Options{Session: session, OnOutage: func(o Outage) { outages <- o }})
			if err != nil {
				t.Fatal(err)
			}
			release := w.hold(t, home)
			l.lockWait.Long, l.head.LockWait.Long = time.Millisecond, time.Millisecond
			l.journal.MaxUnfolded = 20_000
			intent := outcomeOf(session, 1)
			intent.Event, intent.Decision = EventProxyStarted, ""
			served := 1
			must.Get(l.Append(t.Context(), intent))(t)
			o := next(t, outages, "the lock is not reported")
			if !o.Admitting || o.Over || !IsLocked(o.Err) {
				t.Errorf("Outage = %+v", o)
			}
			for err == nil {
				if _, err = l.Append(t.Context(), intent); err == nil {
					served++
				}
				l.flush(t.Context()) // cannot fold
			}
			if !errors.Is(err, journal.ErrUnfolded) || served < 20 {
				t.Errorf("%d requests are served, then %v", served, err)
			}
			if _, err := l.Append(t.Context(), intent); !errors.Is(err, ErrUnavailable) || !IsLocked(err) {
				t.Errorf("with a full journal Append = %v", err)
			}
			release()
			poll(t, "the lock is released, and no request is served", func() bool {
				_, err := l.Append(t.Context(), intent)
				return err == nil
			})
			closeLog(t, l)
			if o := next(t, outages, "the end is not reported"); !o.Over || len(outages) > 0 {
				t.Errorf("Outage = %+v, and %d more", o, len(outages))
			}
			rows, report := all(t, path)
			if !report.OK || len(rows) != 3+served+1 || rows[3].Fields[chain.FieldSpilled] != true {
				t.Errorf("%d rows for %d; Verify = %+v", len(rows), served, report)
			}
		})
	}
}

// While other sessions have their turns, requests wait and are not refused; a client that leaves is not waited for.
func TestRowsWaitForTheFoldOfOthers(t *testing.T) {
	home, session := t.TempDir(), NewID()
	l := openSession(t, filepath.Join(home, databaseName), session)
	intent := outcomeOf(session, 1)
	intent.Event, intent.Decision = EventProxyStarted, ""
	end := (&Log{path: l.path}).takeTurn(time.Hour)
	l.journal.FoldFirst = 1000
	accepted := 0
	for !l.journal.Behind.Load() {
		must.Get(l.Append(t.Context(), intent))(t)
		accepted++
	}
	gone, leave := context.WithCancel(t.Context())
	leave()
	if _, err := l.Append(gone, intent); !errors.Is(err, context.Canceled) {
		t.Errorf("Append for a client that left = %v", err)
	}
	waited := make(chan error, 1)
	go func() {
		_, err := l.Append(context.Background(), intent)
		waited <- err
	}()
	poll(t, "no fold waits for its turn", func() bool { return isWaiting(&l.turns) && isQueued(t, home, 0) })
	end()
	if err := next(t, waited, "a request waits for good"); err != nil {
		t.Errorf("Append = %v", err)
	}
	closeLog(t, l)
	if rows, report := all(t, l.path); !report.OK || len(rows) != accepted+1 {
		t.Errorf("%d rows, want %d; Verify = %+v", len(rows), accepted+1, report)
	}
}
