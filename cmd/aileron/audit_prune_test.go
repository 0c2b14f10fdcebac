package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/e2e/must"
)

// oldRows are the rows of two sessions: one of last year, and one of now.
func oldRows() (rows []audit.Row) {
	rows = requests(8)
	for i := range rows[:5] {
		rows[i].TS, rows[i].SessionID = time.Now().AddDate(-1, 0, 0).Add(time.Duration(i)*time.Second), oldSession
	}
	rows[4].Event = audit.EventSessionEnded // its head is signed in row 6
	rows[7].Event = audit.EventSessionEnded // and that of this one in row 10
	return rows
}

const oldSession = "01M0000000000000000000000A"

func TestOldEventsArePruned(t *testing.T) {
	c := newRunner(t)
	if out := c.ok("audit", "prune", "--before", "90d"); out != "" {
		t.Errorf("without a log: %q", out)
	}
	rows := oldRows()
	c.write(rows[:5]...)
	c.write(rows[5:]...)
	old := filepath.Join(t.TempDir(), "old.jsonl")
	must.Do(t, os.WriteFile(old, []byte(c.ok("audit", "export", "--until", "90d")), 0o600))
	kept := filepath.Join(t.TempDir(), "kept")
	must.Do(t, os.WriteFile(kept, []byte(c.ok("audit", "head")), 0o600))
	notes := filepath.Join(c.Flag, "learn", oldSession+".jsonl")
	must.Do(t, os.MkdirAll(filepath.Dir(notes), 0o700))
	must.Do(t, os.WriteFile(notes, nil, 0o600))
	must.Do(t, os.Chtimes(notes, time.Time{}, time.Now().AddDate(0, 0, -100)))
	for _, w := range []struct {
		args []string
		code int
		want string
	}{
		{nil, 2, "--before is missing"},
		{[]string{"--before", "yesterday"}, 2, "it must be a date such as 2026-11-27, RFC 3339, or a duration"},
		{[]string{"--before", "now", "--yes"}, 2, "it must be a date"},
		{[]string{"--before", "23:59", "--yes"}, 2, "it must be a date"},
		{[]string{"--before", "90d"}, 2, "pass --yes to remove 6 events"},
		{[]string{"--before", "400d", "--yes"}, 0, "nothing to prune: the first event, row 1 of "},
		{[]string{"--before", "90d", "--dry-run"}, 0, "would prune  6 events (rows 1 to 6, "},
		{[]string{"--before", "90d", "--yes", "--head", kept}, 0, "  the notes of 1 learning session are removed"},
		{[]string{"--before", "90d", "--yes"}, 0, "nothing to prune: the first event, row 7 of "},
	} {
		out, errs, code := c.run(append([]string{"audit", "prune"}, w.args...)...)
		if code != w.code || !strings.Contains(out+errs, w.want) {
			t.Errorf("audit prune %q ends with %d: %q, %q; want %d, %q", w.args, code, out, errs, w.code, w.want)
		}
	}
	if out := c.ok("audit", "list"); !strings.Contains(out, "6 rows, up to row 6") || strings.Count(out, "\n") != 5 {
		t.Errorf("audit list prints %q", out)
	}
	out, errs, code := c.run("audit", "verify", "--head", kept)
	if code != 0 || !strings.HasPrefix(out, "ok  5 rows") ||
		!strings.Contains(errs, "rows 1 to 6 were pruned: row 11 stands for them, and is signed") {
		t.Errorf("audit verify ends with %d: %q, %q", code, out, errs)
	}
	c.verifiesExports(old)
	c.tamper("DELETE FROM events WHERE event = 'audit.pruned'")
	if out, _, code := c.run("audit", "verify"); code != 1 || !strings.Contains(out, "rows 1 to 6 are missing before it") {
		t.Errorf("without its row audit verify ends with %d: %q", code, out)
	}
}

// verifiesExports checks the export of a log that was pruned, alone and behind what was exported before.
func (c runner) verifiesExports(old string) {
	c.t.Helper()
	key := strings.TrimSpace(c.ok("audit", "head", "--public-key"))
	before, err := os.ReadFile(old)
	must.Do(c.t, err)
	left := c.ok("audit", "export")
	lines := strings.SplitAfter(left, "\n")
	for _, w := range []struct {
		name, text       string
		want, inPython   string
		failed, inErrors string
	}{
		{"what is left", left, "ok  5 rows, 7 to 11", "ok  up to row 11, 6 rows are not", "",
			"6 rows before row 7 had been pruned: a signed row stands for them"},
		{"all", string(before) + left, "ok  11 rows, 1 to 11", "ok  up to row 11, 0 rows are not", "", ""},
		{"a row edited", strings.Replace(left, `"rows":6`, `"rows":5`, 1), "", "", "its content does not have", ""},
		{"a part", lines[3] + lines[4], "ok  2 rows, 10 to 11", "ok  up to row 11, 9 rows are not", "",
			"3 rows up to row 11 are not in the export"},
	} {
		file := filepath.Join(c.t.TempDir(), "export.jsonl")
		must.Do(c.t, os.WriteFile(file, []byte(w.text), 0o600))
		out, errs, code := c.run("audit", "verify", file, "--key", key)
		checker := exec.CommandContext(c.t.Context(), "python3", "../../examples/verify_audit.py", file, key)
		found, err := checker.CombinedOutput()
		if w.failed != "" {
			if code != 1 || err == nil || !strings.Contains(out, w.failed) || !strings.Contains(string(found), w.failed) {
				c.t.Errorf("%s: %d, %q, and %s", w.name, code, out, found)
			}
			continue
		}
		if code != 0 || !strings.HasPrefix(out, w.want) || !strings.Contains(errs, w.inErrors) || err != nil ||
			!strings.HasPrefix(string(found), w.inPython) {
			c.t.Errorf("%s: %d, %q, %q, and %s", w.name, code, out, errs, found)
		}
	}
}

// Events of a session whose directory is there have not ended, and those that do not verify are not removed.
func TestWhatIsNotPruned(t *testing.T) {
	c := newRunner(t)
	c.write(oldRows()...)
	dir := filepath.Join(c.Flag, "sessions", oldSession)
	must.Do(t, os.MkdirAll(dir, 0o700))
	const want = "nothing to prune: the first events are of session " + oldSession + ", which had not ended then"
	if out := c.ok("audit", "prune", "--before", "90d", "--yes"); !strings.Contains(out, want) {
		t.Errorf("%q; want %q", out, want)
	}
	must.Do(t, os.Remove(dir))
	c.tamper("UPDATE events SET host = 'x' WHERE seq = 2")
	for _, last := range []string{"--yes", "--dry-run"} {
		_, errs, code := c.run("audit", "prune", "--before", "90d", last)
		if code != 1 || !strings.Contains(errs, "rows that do not verify are not removed: its content does not have") {
			t.Errorf("a row was edited, and audit prune %s ends with %d: %q", last, code, errs)
		}
	}
	if out := c.ok("audit", "list"); strings.Count(out, "\n") != 10 {
		t.Errorf("audit list prints %q", out)
	}
}
