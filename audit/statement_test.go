package audit

import (
	"path/filepath"
	"strings"
	"testing"

	sqlite3 "modernc.org/sqlite/lib"
)

// openStatement prepares a query on an empty log.
func openStatement(t *testing.T, query string) *statement {
	t.Helper()
	path := filepath.Join(t.TempDir(), database)
	l, err := Open(path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	closeLog(t, l)
	c, err := openConnection(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.close)
	s, err := c.prepare(query)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// An argument stays bound from one execution to the next, and its memory is used again.
func TestAStatementReadsWhatIsBound(t *testing.T) {
	s := openStatement(t, "SELECT ?, ?, ?")
	long := strings.Repeat("é\x00", keptText)
	for i, texts := range [][2]string{
		{"", "b"}, {"", "b"}, {"a", ""}, {"aa", "b"}, {"", "bb"}, {long, "b"}, {long + "c", "b"}, {"a", "b"},
		{"a\x00c", "\xff"},
	} {
		number := int64(i/2) - 1
		for n, text := range texts {
			if err := s.bindText(n, text); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.bindNumber(2, number); err != nil {
			t.Fatal(err)
		}
		if row, err := s.step(); err != nil || !row {
			t.Fatal(row, err)
		}
		first, ok := s.string(0)
		second, isText := s.string(1)
		n, isNumber := s.number(2)
		if first != texts[0] || second != texts[1] || n != number || !ok || !isText || !isNumber {
			t.Errorf("row %d = %.20q, %.20q, %d; want %.20q, %d", i, first, second, n, texts, number)
		}
		if s.args[0].size > keptText && len(texts[0]) <= keptText {
			t.Errorf("row %d: %d bytes of memory are kept for %d bytes", i, s.args[0].size, len(texts[0]))
		}
		s.reset()
	}
}

func TestAStatementReportsSQLitesCode(t *testing.T) {
	s := openStatement(t, insertRow)
	for i := range s.args {
		if err := s.bindText(i, ""); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.run(); !isMismatch(err) {
		t.Errorf("a text as the number of a row: %v", err)
	}
	for _, i := range []int{0, 16, 19, 20, 21, 22, 23} {
		if err := s.bindNumber(i, 1); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.run(); err != nil {
		t.Fatalf("a row after one that failed: %v", err)
	}
	if err := s.run(); !isSeqConflict(err) {
		t.Errorf("a second row 1: %v, want the code %d", err, sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY)
	}
	if _, err := s.prepare("SELECT x FROM nowhere"); !noTable(err) {
		t.Errorf("a statement without its table: %v", err)
	}
	if _, err := openConnection(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("a database that does not exist was opened")
	}
}
