package audit

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ALRubinger/aileron/e2e/must"
)

// locked is a lock that a writer needs, held as by another process.
type locked struct {
	name string
	hold func(t *testing.T, home string) (release func())
}

func lockedHomes() []locked {
	return []locked{
		{"the database", func(t *testing.T, home string) func() {
			db := must.Get(sql.Open("sqlite", filepath.Join(home, databaseName)+"?_txlock=immediate"))(t)
			tx := must.Get(db.Begin())(t)
			return func() { _, _ = tx.Rollback(), db.Close() }
		}},
		{"audit.head before the first row", func(t *testing.T, home string) func() {
			f := must.Get(os.OpenFile(filepath.Join(home, headName), os.O_RDWR|os.O_CREATE, 0o600))(t)
			must.Do(t, unix.Flock(int(f.Fd()), unix.LOCK_EX))
			return func() { _ = f.Close() }
		}},
	}
}

// A lock that persists costs one long wait in all: later requests fail immediately, and the log works again as soon
// as the lock is released.
func TestALockThatPersistsIsWaitedForOnce(t *testing.T) {
	for _, w := range lockedHomes() {
		t.Run(w.name, func(t *testing.T) {
			home := t.TempDir()
			history(t, home, "before", 3)
			l := openSession(t, filepath.Join(home, databaseName), "mine")
			defer l.Close()
			release := w.hold(t, home)
			l.lockWait.Long, l.head.LockWait.Long = 50*time.Millisecond, 50*time.Millisecond
			_, err := l.Append(t.Context(), Row{Event: EventProxyStarted})
			if !errors.Is(err, ErrUnavailable) || !IsLocked(err) {
				t.Fatalf("Append = %v; want %v because of a lock", err, ErrUnavailable)
			}
			// A long wait that begins now does not end before the test.
			l.lockWait.Long, l.head.LockWait.Long = time.Hour, time.Hour
			var requests sync.WaitGroup
			failed := make(chan error, 64)
			for i := range cap(failed) {
				requests.Go(func() {
					_, err := l.Append(context.Background(), Row{Event: EventProxyStarted, Status: i})
					failed <- err
				})
			}
			timeout := time.After(patience)
			for range cap(failed) {
				select {
				case err := <-failed:
					if !errors.Is(err, ErrUnavailable) || !IsLocked(err) {
						t.Errorf("Append = %v; want %v because of a lock", err, ErrUnavailable)
					}
				case <-timeout:
					release()
					t.Fatal("a request behind a lock that persists waits for it again")
				}
			}
			requests.Wait()
			release()
			appendNumbered(t, l, "mine", 1)
			if l.lockWait.Span() != time.Hour {
				t.Errorf("with the lock released a commit waits %v for the next one", l.lockWait.Span())
			}
			rows, report := all(t, filepath.Join(home, databaseName))
			if !report.OK || len(rows) != 4 {
				t.Errorf("%d rows; Verify = %+v", len(rows), report)
			}
		})
	}
}

// A head that cannot be locked delays only the first commit for long.
func TestALockedHeadDelaysOneCommit(t *testing.T) {
	home := t.TempDir()
	l := openSession(t, filepath.Join(home, databaseName), "mine")
	appendNumbered(t, l, "mine", 0)
	l.flush(t.Context())
	release := lockedHomes()[1].hold(t, home)
	l.head.LockWait.Long = 50 * time.Millisecond
	l.head.Written = time.Time{}
	appendNumbered(t, l, "mine", 1)
	l.head.LockWait.Long = time.Hour
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range 5 {
			l.flush(t.Context()) // writes the head
			appendNumbered(t, l, "mine", 2+i)
		}
	}()
	select {
	case <-done:
	case <-time.After(patience):
		t.Error("a commit waits for the head again")
	}
	release()
	<-done
	closeLog(t, l)
	if rows, report := all(t, filepath.Join(home, databaseName)); !report.OK || len(rows) != 7 {
		t.Errorf("%d rows; Verify = %+v", len(rows), report)
	}
}

// The last commit of a session waits for long: rows that it does not write are lost.
func TestTheLastCommitWaitsForALock(t *testing.T) {
	home := t.TempDir()
	path := filepath.Join(home, databaseName)
	l := openSession(t, path, "mine")
	appendNumbered(t, l, "mine", 0)
	release := lockedHomes()[0].hold(t, home)
	l.lockWait.Long = time.Millisecond
	if _, err := l.Append(t.Context(), Row{Event: EventProxyStarted}); !IsLocked(err) {
		t.Fatalf("Append = %v", err)
	}
	l.lockWait.Long = time.Hour
	must.Do(t, l.AppendSoon(t.Context(), Row{Event: EventProxyProxied, Path: strings.Repeat("/", 9)}))
	closed := make(chan error, 1)
	go func() { closed <- l.Close() }()
	poll(t, "Close does not begin its last commit", l.lockWait.Last.Load)
	release()
	if err := <-closed; err != nil {
		t.Errorf("Close = %v", err)
	}
	if rows, _ := all(t, path); len(rows) != 2 {
		t.Errorf("%d rows, want 2", len(rows))
	}
}
