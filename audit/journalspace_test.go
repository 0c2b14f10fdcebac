package audit

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// On a full disk no intent is accepted; what has begun is, and the end of the session to the last byte.
func TestAFullDiskTakesWhatHasBegun(t *testing.T) {
	path, session := filepath.Join(t.TempDir(), database), NewID()
	l := openSession(t, path, session)
	appendNumbered(t, l, session, 0)
	l.flush(t.Context())
	refuse(t, path, "1")
	j := l.journal
	j.mu.Lock()
	sealed := min(j.allocated, j.written+journalAhead)
	j.allocated, j.allocate = sealed, func(*os.File, int64, int64) error { return unix.ENOSPC }
	j.mu.Unlock()
	intent := outcomeOf(session, 1)
	intent.Event, intent.Decision = EventProxyStarted, ""
	if _, err := l.Append(t.Context(), intent); !errors.Is(err, ErrUnavailable) {
		t.Fatalf("Append of an intent = %v", err)
	}
	outcomes := 0
	for i := range 500 {
		r := outcomeOf(session, i)
		r.Path = "/" + strings.Repeat("x", 1000)
		r.begin()
		if l.journal.add(t.Context(), &r, true) != nil {
			break
		}
		outcomes++
	}
	for { // the rest, by rows that are smaller than the last one
		r := Row{Event: EventVaultLocked, SessionID: session}
		r.begin()
		if l.journal.add(t.Context(), &r, true) != nil {
			break
		}
		outcomes++
	}
	if outcomes < 30 {
		t.Errorf("%d outcomes are kept", outcomes)
	}
	ended := Row{Event: EventSessionEnded, SessionID: session, Source: SourceLauncher}
	if err := l.AppendSoon(t.Context(), ended); err != nil {
		t.Fatal(err)
	}
	if j.written > sealed {
		t.Errorf("%d bytes are written to %d that are allocated", j.written, sealed)
	}
	var lost *LostError
	if err := l.Close(); !errors.As(err, &lost) || lost.Kept != outcomes+1 || lost.Lost != 0 {
		t.Fatalf("Close = %v; want %d rows kept", err, outcomes+1)
	}
	admit(t, path)
	closeLog(t, openSession(t, path, ""))
	rows, report := all(t, path)
	if !report.OK || len(rows) != 2+outcomes || rows[len(rows)-1].Event != EventSessionEnded {
		t.Errorf("%d rows, Verify = %+v", len(rows), report)
	}
}

// Beyond a bound of unfolded rows no intent is accepted, and a bound below it makes intents wait for the fold.
func TestUnfoldedRowsAreBounded(t *testing.T) {
	path, session := filepath.Join(t.TempDir(), database), NewID()
	l := openSession(t, path, session)
	defer l.Close()
	l.journal.foldFirst, l.journal.maxUnfolded = 20_000, 60_000
	intent := outcomeOf(session, 1)
	intent.Event, intent.Decision = EventProxyStarted, ""
	for range 2000 {
		if _, err := l.Append(t.Context(), intent); err != nil {
			t.Fatal(err)
		}
	}
	l.flush(t.Context())
	l.journal.foldFirst = 1 << 30
	l.timer.Stop()
	l.armed.Store(true)
	var err error
	for range 2000 {
		if err = l.journal.add(t.Context(), &intent, true); err != nil {
			break
		}
	}
	if !errors.Is(err, errUnfolded) {
		t.Errorf("add = %v, want %v", err, errUnfolded)
	}
}

// Space of folded frames is given back.
func TestALongSessionsJournalIsBounded(t *testing.T) {
	path, session := filepath.Join(t.TempDir(), database), NewID()
	l := openSession(t, path, session)
	defer l.Close()
	for i := range 20 {
		for range 300 {
			if err := l.AppendSoon(t.Context(), outcomeOf(session, i)); err != nil {
				t.Fatal(err)
			}
		}
		l.flush(t.Context())
	}
	if size := allocated(l.journal.file); size > 3*journalStep && l.journal.punched > journalStart {
		t.Errorf("after %d bytes the journal has %d on the disk", l.journal.written, size)
	}
}

// The unused file of a killed session is removed; one that is locked is not.
func TestOnlyTheFilesOfEndedSessionsAreAdopted(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, database)
	l := openSession(t, path, NewID())
	killed := filepath.Join(dir, journalPrefix+NewID()+"-"+NewID())
	if err := os.WriteFile(killed, make([]byte, 64<<10), 0o600); err != nil {
		t.Fatal(err)
	}
	closeLog(t, openSession(t, path, ""))
	if _, err := os.Stat(killed); !os.IsNotExist(err) {
		t.Errorf("the file of a killed session is left: %v", err)
	}
	if _, err := os.Stat(l.journal.path); err != nil || allocated(l.journal.file) < journalAhead {
		t.Errorf("the file of a session that runs: %v, %d bytes", err, allocated(l.journal.file))
	}
	closeLog(t, l)
	if all, _ := os.ReadDir(dir); len(all) > 3+len(sidecars) {
		t.Errorf("left: %v", all)
	}
}
