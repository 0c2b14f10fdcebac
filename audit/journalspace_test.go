package audit

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/ALRubinger/aileron/audit/internal/journal"
	"github.com/ALRubinger/aileron/audit/internal/table"
	"github.com/ALRubinger/aileron/e2e/must"
)

// On a full disk no intent is accepted; what has begun is, and the end of the session to the last byte.
func TestAFullDiskTakesWhatHasBegun(t *testing.T) {
	path, session := filepath.Join(t.TempDir(), databaseName), NewID()
	l := openSession(t, path, session)
	appendNumbered(t, l, session, 0)
	l.flush(t.Context())
	refuse(t, path, "1")
	j := l.journal
	j.Mu.Lock()
	sealed := min(j.Allocated, j.Written+journal.Ahead)
	j.Allocated, j.Allocate = sealed, func(*os.File, int64, int64) error { return unix.ENOSPC }
	j.Mu.Unlock()
	intent := outcomeOf(session, 1)
	intent.Event, intent.Decision = EventProxyStarted, ""
	if _, err := l.Append(t.Context(), intent); !errors.Is(err, ErrUnavailable) {
		t.Fatalf("Append of an intent = %v", err)
	}
	outcomes := 0
	for i := range 500 {
		r := outcomeOf(session, i)
		r.Path = "/" + strings.Repeat("x", 1000)
		r.Begin()
		if l.journal.Add(t.Context(), &r, true) != nil {
			break
		}
		outcomes++
	}
	for { // the rest, by rows that are smaller than the last one
		r := Row{Event: EventVaultLocked, SessionID: session}
		r.Begin()
		if l.journal.Add(t.Context(), &r, true) != nil {
			break
		}
		outcomes++
	}
	if outcomes < 30 {
		t.Errorf("%d outcomes are kept", outcomes)
	}
	ended := Row{Event: EventSessionEnded, SessionID: session, Source: SourceLauncher}
	must.Do(t, l.AppendSoon(t.Context(), ended))
	if j.Written > sealed {
		t.Errorf("%d bytes are written to %d that are allocated", j.Written, sealed)
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
	path, session := filepath.Join(t.TempDir(), databaseName), NewID()
	l := openSession(t, path, session)
	defer l.Close()
	l.journal.FoldFirst, l.journal.MaxUnfolded = 20_000, 60_000
	intent := outcomeOf(session, 1)
	intent.Event, intent.Decision = EventProxyStarted, ""
	for range 2000 {
		must.Get(l.Append(t.Context(), intent))(t)
	}
	l.flush(t.Context())
	l.journal.FoldFirst = 1 << 30
	l.timer.Stop()
	l.armed.Store(true)
	var err error
	for range 2000 {
		if err = l.journal.Add(t.Context(), &intent, true); err != nil {
			break
		}
	}
	if !errors.Is(err, journal.ErrUnfolded) {
		t.Errorf("add = %v, want %v", err, journal.ErrUnfolded)
	}
}

// Space of folded frames is given back.
func TestALongSessionsJournalIsBounded(t *testing.T) {
	path, session := filepath.Join(t.TempDir(), databaseName), NewID()
	l := openSession(t, path, session)
	defer l.Close()
	for i := range 20 {
		for range 300 {
			must.Do(t, l.AppendSoon(t.Context(), outcomeOf(session, i)))
		}
		l.flush(t.Context())
	}
	if size := journal.Allocated(l.journal.File); size > 3*journal.Step && l.journal.Punched > journal.Start {
		t.Errorf("after %d bytes the journal has %d on the disk", l.journal.Written, size)
	}
}

// The unused file of a killed session is removed; one that is locked is not.
func TestOnlyTheFilesOfEndedSessionsAreAdopted(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, databaseName)
	l := openSession(t, path, NewID())
	killed := filepath.Join(dir, journal.Prefix+NewID()+"-"+NewID())
	must.Do(t, os.WriteFile(killed, make([]byte, 64<<10), 0o600))
	closeLog(t, openSession(t, path, ""))
	if _, err := os.Stat(killed); !os.IsNotExist(err) {
		t.Errorf("the file of a killed session is left: %v", err)
	}
	if _, err := os.Stat(l.journal.Path); err != nil || journal.Allocated(l.journal.File) < journal.Ahead {
		t.Errorf("the file of a session that runs: %v, %d bytes", err, journal.Allocated(l.journal.File))
	}
	closeLog(t, l)
	if all, _ := os.ReadDir(dir); len(all) > 3+len(table.Sidecars) {
		t.Errorf("left: %v", all)
	}
}
