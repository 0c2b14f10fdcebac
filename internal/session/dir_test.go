package session

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/internal/filelock"
	"github.com/ALRubinger/aileron/internal/format"
)

func TestASessionsFilesAreItsOwners(t *testing.T) {
	s := open(t, newOptions(t))
	for name, want := range map[string]os.FileMode{
		"": 0o700, "control.sock": 0o600, "session.json": 0o600, "lock": 0o600,
	} {
		info, err := os.Stat(filepath.Join(s.Dir(), name))
		if err != nil || info.Mode().Perm() != want {
			t.Errorf("%q: %v, %v; want %v", name, info.Mode(), err, want)
		}
	}
	if !Alive(s.opts.Home, s.ID()) {
		t.Error("it does not count as running")
	}
	for _, id := range []string{"../sessions/" + s.ID(), s.ID() + "/.", "./" + s.ID()} {
		if Alive(s.opts.Home, id) {
			t.Errorf("the path %q counts as a session", id)
		}
	}
}

// A session that is opened while its engine is found has the engine's name from then on: in the list, and in the log.
func TestASessionIsNamedAfterTheEngineThatWasFound(t *testing.T) {
	o := newOptions(t)
	o.Mode = "auto"
	s := open(t, o)
	if d := must.Get(readDescription(s.Dir()))(t); d.Mode != "auto" {
		t.Errorf("the mode is %q before, want auto", d.Mode)
	}
	if cpus := s.opts.cpus(); cpus <= 0 {
		t.Errorf("a session of a sandbox may use %v CPUs, want a bound", cpus)
	}
	must.Do(t, s.NoteMode("docker"))
	if d := must.Get(readDescription(s.Dir()))(t); d.Mode != "docker" || d.ID != s.ID() {
		t.Errorf("the description is %+v, want docker", d)
	}
	must.Do(t, s.Serve(t.Context(), true))
	must.Do(t, s.Close(t.Context(), 0, "the command ended"))
	for _, r := range grantsRows(t, o.Home) {
		if r.Event == audit.EventSessionStarted && r.Fields["mode"] != "docker" {
			t.Errorf("session.started has the mode %v, want docker", r.Fields["mode"])
		}
	}
}

// A process that stood still before it had its lock may find its directory
// swept away.
func TestASessionThatWasSweptBeforeItsLockHasADirectory(t *testing.T) {
	o := newOptions(t)
	refused := make(chan struct{}, 1)
	o.Locks.Flock = func(fd, how int) error {
		err := unix.Flock(fd, how)
		if errors.Is(err, unix.EWOULDBLOCK) {
			select {
			case refused <- struct{}{}:
			default:
			}
		}
		return err
	}
	s := newSession(o)
	dir := filepath.Join(sessionsDir(s.opts.Home), s.id)
	must.Do(t, os.MkdirAll(dir, 0o700))
	sweep, err := lockDir(filelock.Locker{}, dir)
	must.Do(t, err)
	made := make(chan error)
	go func() { made <- s.makeDir(t.Context()) }()
	select {
	case <-refused: // the sweep has the lock
	case err := <-made:
		t.Fatalf("the directory of another process was taken: %v", err)
	}
	must.Do(t, os.Rename(dir, filepath.Join(t.TempDir(), "swept")))
	_ = sweep.Close()
	must.Do(t, <-made)
	defer s.release()
	if _, err := os.Stat(filepath.Join(dir, "session.json")); err != nil || !Alive(s.opts.Home, s.id) {
		t.Errorf("its description: %v; alive: %v", err, Alive(s.opts.Home, s.id))
	}
}

// killed leaves the directory of a session whose process is gone, last changed
// some time ago. A description of "" is none.
func killed(t *testing.T, home, id, description string, age time.Duration) {
	t.Helper()
	dir := filepath.Join(sessionsDir(home), id)
	must.Do(t, os.MkdirAll(dir, 0o700))
	if description != "" {
		must.Do(t, os.WriteFile(filepath.Join(dir, "session.json"), []byte(description), 0o600))
	}
	at := time.Now().Add(-age)
	must.Do(t, os.Chtimes(dir, at, at))
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

// A session that is swept does not count as running, however long that takes:
// what belongs to it is removed meanwhile. Another sweep leaves it alone.
func TestASessionThatIsSweptDoesNotRun(t *testing.T) {
	o := newOptions(t)
	killed(t, o.Home, "01KILLED", `{"id":"01KILLED","pid":1}`, time.Hour)
	locks := 0
	other := open(t, o)
	o.Locks.Flock = func(fd, how int) error {
		err := unix.Flock(fd, how)
		if name, _ := os.Readlink(fmt.Sprint("/proc/self/fd/", fd)); strings.Contains(name, "/01KILLED/") && err == nil {
			if locks++; Alive(o.Home, "01KILLED") {
				t.Errorf("with the lock %s it counts as running", name)
			}
			if locks == 2 {
				other.sweep(t.Context(), filepath.Join(sessionsDir(o.Home), "01KILLED"))
				checkEvents(t, o.Home)
			}
		}
		return err
	}
	open(t, o).Sweep(t.Context())
	if locks != 2 {
		t.Errorf("%d locks, want those of the session and of the sweep", locks)
	}
	if got := left(t, o.Home); slices.Contains(got, "01KILLED") {
		t.Errorf("the directories %q are left", got)
	}
	checkEvents(t, o.Home, audit.EventSessionEnded)
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
	busy := must.Get(lockDir(filelock.Locker{}, filepath.Join(sessionsDir(o.Home), "01BUSY")))(t)
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
	must.Do(t, os.Rename(path, away))
	must.Do(t, os.Mkdir(path, 0o700)) // nothing can be written here
	s.Sweep(t.Context())
	if got := left(t, o.Home); len(got) != 2 {
		t.Errorf("without a log the directories %q are left, want both", got)
	}
	must.Do(t, os.Remove(path))
	must.Do(t, os.Rename(away, path))
	s.Abandon(t.Context())
	open(t, o).Sweep(t.Context())
	if got := left(t, o.Home); slices.Contains(got, "01KILLED") {
		t.Errorf("with a log the directories %q are left", got)
	}
	checkEvents(t, o.Home, audit.EventSessionEnded)
}

// lister lists the sessions of a home whose log may be missing.
func lister(t *testing.T, home string) Lister {
	t.Helper()
	return Lister{Home: home,
		OpenLog: func() (*audit.Log, error) {
			path := filepath.Join(home, "audit.db")
			if _, err := os.Stat(path); err != nil {
				return nil, nil //nolint:nilnil // there is none yet
			}
			return audit.OpenReader(path)
		},
		Warn: func(n audit.Notice) { t.Errorf("warned: %s: %v", n.Text, n.Err) }}
}

// A session is listed from the moment that it has a description, before it has
// a row, and keeps its state when its directory is gone.
func TestASessionIsListedByItsState(t *testing.T) {
	o := newOptions(t)
	check := func(id, state, cause string) {
		t.Helper()
		s, err := lister(t, o.Home).Find(t.Context(), id)
		if err != nil || s.State != state || s.Cause != cause || s.Mode != "proxy" || s.Agent != "curl" {
			t.Errorf("Find = %+v, %v; want it %s, %q", s, err, state, cause)
		}
	}
	s := open(t, o)
	check(s.ID(), "running", "")
	must.Do(t, s.Serve(t.Context(), false))
	check(s.ID(), "running", "")
	must.Do(t, s.Close(t.Context(), 0, "the command ended"))
	check(s.ID(), "ended", "the command ended")
	killed(t, o.Home, "01KILLED", `{"id":"01KILLED","agent":"curl","mode":"proxy"}`, time.Hour)
	check("01KILLED", "unclean", uncleanCause)
	all, err := lister(t, o.Home).List(t.Context())
	if err != nil || len(all) != 2 || all[0].ID != "01KILLED" || all[1].ID != s.ID() {
		t.Errorf("List = %+v, %v", all, err)
	}
}

func TestAnUnknownSessionIsNotFound(t *testing.T) {
	_, err := lister(t, t.TempDir()).Find(t.Context(), "01NONE")
	var missing *NotFoundError
	if !errors.As(err, &missing) || missing.ErrorClass() != "invalid_request" || missing.ErrorReason() != "not_found" {
		t.Errorf("Find: %v, want a NotFoundError", err)
	}
}

// A session that does not run, or whose control socket is not known, is not
// stopped.
func TestOnlyARunningSessionIsStopped(t *testing.T) {
	home := t.TempDir()
	if err := (State{ID: "01X", State: "ended"}).Stop(t.Context(), home); err == nil || errors.Is(err, ErrEnded) {
		t.Errorf("an ended session: %v, want an error", err)
	}
	if err := (State{ID: "01X", State: "running"}).Stop(t.Context(), home); !errors.Is(err, ErrEnded) {
		t.Errorf("one that ended meanwhile: %v, want ErrEnded", err)
	}
	killed(t, home, "01NEWER", `{"format":99,"id":"01NEWER"}`, time.Hour)
	s, err := lister(t, home).Find(t.Context(), "01NEWER")
	must.Do(t, err)
	s.State = "running"
	if err := s.Stop(t.Context(), home); !errors.As(err, new(*format.Error)) {
		t.Errorf("one of a newer aileron: %v, want a format.Error", err)
	}
}

// An id may be shortened as long as one session alone begins with it.
func TestASessionIsFoundByTheBeginningOfItsID(t *testing.T) {
	o := newOptions(t)
	o.Detached = true
	one, two := open(t, o), open(t, o)
	must.Do(t, one.Serve(t.Context(), true))
	l := lister(t, o.Home)
	same := 0
	for one.ID()[same] == two.ID()[same] {
		same++
	}
	got, err := l.Find(t.Context(), strings.ToLower(one.ID()[:same+1]))
	if err != nil || got.ID != one.ID() || !got.Detached || got.Attached {
		t.Errorf("by a beginning of its id: %+v, %v", got, err)
	}
	if _, err := l.Find(t.Context(), one.ID()[:same]); err == nil || !strings.Contains(err.Error(), "the ids of 2 begin") {
		t.Errorf("by the beginning of two: %v", err)
	}
	if _, err := l.Find(t.Context(), ""); !errors.As(err, new(*NotFoundError)) {
		t.Errorf("by nothing: %v", err)
	}
}
