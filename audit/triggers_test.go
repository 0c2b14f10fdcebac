package audit

import (
	"database/sql"
	"slices"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/audit/internal/table"
	"github.com/ALRubinger/aileron/e2e/must"
)

// changeRow runs a statement as a program that does not know what the file is.
func changeRow(t *testing.T, path, query string) error {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	_, err = db.Exec(query)
	return err
}

// TestTheDatabaseRefusesToChangeARow tries to change rows of a new log, and of one that an earlier version wrote, which
// gets its triggers when it is opened.
func TestTheDatabaseRefusesToChangeARow(t *testing.T) {
	for _, earlier := range []bool{false, true} {
		home := t.TempDir()
		path := history(t, home, "first", 8)
		if earlier {
			execSQL(t, path, "SELECT 1") // drops them
			history(t, home, "second", 2)
		}
		before, _ := all(t, path)
		for query, want := range map[string]string{
			"UPDATE events SET host = 'x' WHERE seq = 3": "a row of the audit log is never changed",
			"UPDATE events SET seq = 99 WHERE seq = 3":   "a row of the audit log is never changed",
			"DELETE FROM events WHERE seq = 3":           "is removed by aileron audit prune only",
			"DELETE FROM events":                         "is removed by aileron audit prune only",
			"INSERT INTO events SELECT * FROM events WHERE seq = 3 ON CONFLICT DO UPDATE SET host = ''": "never changed",
			"PRAGMA recursive_triggers = 1; REPLACE INTO events SELECT * FROM events WHERE seq = 3":     "audit prune only",
		} {
			if err := changeRow(t, path, query); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("earlier %v: %s = %v, want %q", earlier, query, err, want)
			}
		}
		after, report := all(t, path)
		if !report.OK || !slices.EqualFunc(before, after, func(a, b Row) bool { return a.Hash == b.Hash }) {
			t.Errorf("earlier %v: the log was changed: %+v", earlier, report)
		}
	}
}

// TestARowThatWasReplacedIsFound replaces a row, which fires no trigger.
func TestARowThatWasReplacedIsFound(t *testing.T) {
	path := history(t, t.TempDir(), "first", 8)
	columns := strings.Replace(table.Columns, "host", "'innocent.example'", 1)
	must.Do(t, changeRow(t, path, "REPLACE INTO events SELECT "+columns+" FROM events WHERE seq = 3"))
	if report := verifyPath(t, path); report.OK || report.BrokenSeq != 3 {
		t.Errorf("Verify = %+v, want row 3 broken", report)
	}
}
