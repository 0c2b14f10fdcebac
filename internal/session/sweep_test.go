package session

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/internal/filelock"
)

// killed leaves the directory of a session whose process is gone, last changed
// some time ago. A description of "" is none.
func killed(t *testing.T, home, id, description string, age time.Duration) {
	t.Helper()
	dir := filepath.Join(sessionsDir(home), id)
	fatal(t, os.MkdirAll(dir, 0o700))
	if description != "" {
		fatal(t, os.WriteFile(filepath.Join(dir, "session.json"), []byte(description), 0o600))
	}
	at := time.Now().Add(-age)
	fatal(t, os.Chtimes(dir, at, at))
}

// The end of a session that was killed is recorded once, by the next one.
func TestASweepRecordsTheEndOfAKilledSession(t *testing.T) {
	o := newOptions(t)
	killed(t, o.Home, "01KILLED", `{"id":"01KILLED","pid":1}`, 0)
	s := open(t, o)
	s.Sweep(t.Context())
	s.Sweep(t.Context())
	if got := left(t, o.Home); !slices.Equal(got, []string{s.ID()}) {
		t.Errorf("the directories %q are left, want only %s", got, s.ID())
	}
	list := rows(t, o.Home)
	if len(list) != 1 || list[0].Event != audit.EventSessionEnded || list[0].SessionID != "01KILLED" ||
		list[0].Reason != "unclean" || list[0].Fields["cause"] != uncleanCause {
		t.Errorf("the rows are %+v, want one unclean end", list)
	}
}

// A directory may come from before the clock was set back: its session has
// ended all the same. One that was created just now may be about to be locked.
func TestASweepSparesOnlyWhatMayBegin(t *testing.T) {
	o := newOptions(t)
	s := open(t, o)
	killed(t, o.Home, "01PAST", "", time.Hour)
	killed(t, o.Home, "01FUTURE", "", -24*time.Hour)
	killed(t, o.Home, "01NOW", "", -lockGrace+100*time.Millisecond) // and for some time, on a busy machine
	killed(t, o.Home, "01NEWER", `{"format":99,"id":"01NEWER"}`, time.Hour)
	killed(t, o.Home, "01BUSY", "", time.Hour)
	busy, err := lockDir(filelock.Locker{}, filepath.Join(sessionsDir(o.Home), "01BUSY"))
	fatal(t, err)
	defer busy.Close()
	s.Sweep(t.Context())
	want := []string{"01BUSY", "01NEWER", "01NOW", s.ID()}
	slices.Sort(want)
	if got := left(t, o.Home); !slices.Equal(got, want) {
		t.Errorf("the directories %q are left, want %q", got, want)
	}
	checkEvents(t, o.Home)
}

// A session whose end cannot be recorded stays for the next session.
func TestASweepKeepsWhatItCannotRecord(t *testing.T) {
	o := newOptions(t)
	s := open(t, o)
	killed(t, o.Home, "01KILLED", `{"id":"01KILLED"}`, time.Hour)
	path, away := filepath.Join(o.Home, "audit.db"), filepath.Join(o.Home, "away.db")
	fatal(t, os.Rename(path, away))
	fatal(t, os.Mkdir(path, 0o700)) // nothing can be written here
	s.Sweep(t.Context())
	if got := left(t, o.Home); len(got) != 2 {
		t.Errorf("without a log the directories %q are left, want both", got)
	}
	fatal(t, os.Remove(path))
	fatal(t, os.Rename(away, path))
	s.Abandon(t.Context())
	open(t, o).Sweep(t.Context())
	if got := left(t, o.Home); slices.Contains(got, "01KILLED") {
		t.Errorf("with a log the directories %q are left", got)
	}
	checkEvents(t, o.Home, audit.EventSessionEnded)
}
