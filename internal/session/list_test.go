package session

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/internal/format"
)

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
	fatal(t, s.Serve(t.Context(), false))
	check(s.ID(), "running", "")
	fatal(t, s.Close(t.Context(), 0, "the command ended"))
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
	fatal(t, err)
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
	fatal(t, one.Serve(t.Context(), true))
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
