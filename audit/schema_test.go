package audit

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
)

// A database of another version is not written by a session, a command or a recovery; it is read as far as its
// columns are known.
func TestADatabaseOfANewerAileronIsLeftAlone(t *testing.T) {
	for _, w := range []struct {
		name, change, want string
		readable           bool
	}{
		{"a higher version", "PRAGMA user_version = 2", "its schema is 2, and this aileron knows 1", true},
		{"one column more", "ALTER TABLE events ADD COLUMN tenant TEXT NOT NULL DEFAULT ''",
			"columns that this one does not know", true},
		{"one column less", "ALTER TABLE events DROP COLUMN redactions", "it lacks the columns redactions", false},
	} {
		t.Run(w.name, func(t *testing.T) {
			home := t.TempDir()
			path := history(t, home, "first", 12)
			l := openSession(t, path, "running")
			appendNumbered(t, l, "running", 0)
			closeLog(t, l)
			execSQL(t, path, w.change)
			before, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			var foreign *SchemaError
			_, err = Open(path, Options{Session: "second"})
			if !errors.As(err, &foreign) || !strings.Contains(err.Error(), w.want) {
				t.Errorf("Open = %v, want %q", err, w.want)
			}
			r := must.Get(OpenReader(path))(t)
			defer r.Close()
			if _, err := r.Verify(t.Context()); !errors.As(err, &foreign) {
				t.Errorf("Verify = %v, want %q", err, w.want)
			}
			rows, err := r.List(t.Context(), Filter{})
			if readable := err == nil && len(rows) == 13; readable != w.readable || (len(foreign.Lacks) == 0) != w.readable {
				t.Errorf("%d rows can be read, %v; the error is %+v", len(rows), err, foreign)
			}
			after, err := os.ReadFile(path)
			if err != nil || !bytes.Equal(after, before) {
				t.Errorf("the file was changed: %v", err)
			}
			if kept, _ := filepath.Glob(path + ".damaged-*"); len(kept) > 0 {
				t.Errorf("%q are left", kept)
			}
		})
	}
}

// A database of an earlier version, which set no version, is used as it is.
func TestADatabaseOfAnEarlierAileronIsUsed(t *testing.T) {
	for _, version := range []string{"0", "1"} {
		path := history(t, t.TempDir(), "first", 3)
		execSQL(t, path, "PRAGMA user_version = "+version)
		history(t, filepath.Dir(path), "second", 3)
		if rows, report := all(t, path); len(rows) != 6 || !report.OK {
			t.Errorf("version %s: %d rows; Verify = %+v", version, len(rows), report)
		}
	}
}

// A session does not write to a log that a newer aileron has upgraded meanwhile: no request is served, and the last
// rows of the session wait in its journal.
func TestASessionDoesNotWriteToALogOfANewerAileron(t *testing.T) {
	path := history(t, t.TempDir(), "first", 3)
	session := NewID()
	l, err := Open(path, Options{Session: session})
	if err != nil {
		t.Fatal(err)
	}
	appendNumbered(t, l, session, 0)
	l.flush(t.Context())
	execSQL(t, path, "PRAGMA user_version = 2")
	eventually(t, l.health, "it is not noticed", func() bool { return l.health.Changed() != nil })
	var foreign *SchemaError
	_, err = l.Append(t.Context(), Row{Event: EventProxyStarted})
	if !errors.Is(err, ErrUnavailable) || !errors.As(err, &foreign) {
		t.Errorf("Append = %v; want %v because of the version", err, ErrUnavailable)
	}
	late := Row{Event: EventProxyProxied, SessionID: session, Host: "late.example"}
	must.Do(t, l.AppendSoon(t.Context(), late))
	var lost *LostError
	if err := l.Close(); !errors.As(err, &lost) || lost.Kept != 1 || lost.Lost != 0 {
		t.Errorf("Close = %v, want one row kept", err)
	}
	execSQL(t, path, "PRAGMA user_version = 0")
	history(t, filepath.Dir(path), "next", 1)
	rows, report := all(t, path)
	if len(rows) != 6 || !report.OK || rows[4].Host != "late.example" {
		t.Errorf("%d rows; Verify = %+v", len(rows), report)
	}
}
