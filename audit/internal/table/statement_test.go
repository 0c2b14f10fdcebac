package table

import (
	"database/sql"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	sqlite3 "modernc.org/sqlite/lib"

	"github.com/ALRubinger/aileron/e2e/must"
)

// testDatabase returns the path of a database with n rows.
func testDatabase(t *testing.T, n int) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "audit.db")
	d := must.Get(Open(path, "", time.Second))(t)
	for seq := range n {
		row := make([]any, ColumnCount)
		for i := range row {
			row[i] = strings.Repeat("x", 20)
		}
		for _, i := range numbers {
			row[i] = seq + 1
		}
		must.Get(d.SQL().Exec(InsertRow, row...))(t)
	}
	must.Do(t, d.Close())
	return path
}

// numbers are the columns that have a number.
var numbers = []int{0, 16, 19, 20, 21, 22, 23}

// openStatement prepares a query on an empty log.
func openStatement(t *testing.T, query string) *Statement {
	t.Helper()
	c := openTestConnection(t, testDatabase(t, 0))
	return must.Get(c.Prepare(query))(t)
}

// An argument stays bound from one execution to the next, and its memory is used again.
func TestAStatementReadsWhatIsBound(t *testing.T) {
	s := openStatement(t, "SELECT ?, ?, ?")
	long := strings.Repeat("é\x00", KeptText)
	for i, texts := range [][2]string{
		{"", "b"}, {"", "b"}, {"a", ""}, {"aa", "b"}, {"", "bb"}, {long, "b"}, {long + "c", "b"}, {"a", "b"},
		{"a\x00c", "\xff"},
	} {
		number := int64(i/2) - 1
		for n, text := range texts {
			must.Do(t, s.BindText(n, text))
		}
		must.Do(t, s.BindNumber(2, number))
		if row, err := s.Step(); err != nil || !row {
			t.Fatal(row, err)
		}
		first, ok := s.String(0)
		second, isText := s.String(1)
		n, isNumber := s.Number(2)
		if first != texts[0] || second != texts[1] || n != number || !ok || !isText || !isNumber {
			t.Errorf("row %d = %.20q, %.20q, %d; want %.20q, %d", i, first, second, n, texts, number)
		}
		if s.Args[0].Size > KeptText && len(texts[0]) <= KeptText {
			t.Errorf("row %d: %d bytes of memory are kept for %d bytes", i, s.Args[0].Size, len(texts[0]))
		}
		s.Reset()
	}
}

// An argument that SQLite has not accepted is not taken for bound: the next row would get the one before it.
func TestAnArgumentThatIsNotAcceptedIsNotBound(t *testing.T) {
	s := openStatement(t, "SELECT ?")
	must.Do(t, s.BindText(0, "before"))
	const small = 100
	long := strings.Repeat("x", 2*small)
	usual := sqlite3.Xsqlite3_limit(s.Tls, s.Db, sqlite3.SQLITE_LIMIT_LENGTH, small)
	if err := s.BindText(0, long); err == nil || !IsOfRow(err) {
		t.Fatalf("beyond the limit of SQLite bindText = %v", err)
	}
	sqlite3.Xsqlite3_limit(s.Tls, s.Db, sqlite3.SQLITE_LIMIT_LENGTH, usual)
	must.Do(t, s.BindText(0, long))
	if row, err := s.Step(); err != nil || !row {
		t.Fatal(row, err)
	}
	if text, ok := s.String(0); text != long || !ok {
		t.Errorf("the argument is %.20q, %v", text, ok)
	}
	s.Reset()
}

// Both interfaces report the same code for what can be wrong with a database, so that its causes have one name.
func TestBothInterfacesReportTheSameCode(t *testing.T) {
	for _, w := range []struct {
		name   string
		spoil  func(t *testing.T, path string)
		before []string
		query  string
		code   int
	}{
		{name: "locked", code: sqlite3.SQLITE_BUSY, query: "BEGIN IMMEDIATE", spoil: func(t *testing.T, path string) {
			c := openTestConnection(t, path)
			must.Do(t, c.Exec("BEGIN IMMEDIATE"))
		}},
		{name: "full", code: sqlite3.SQLITE_FULL, before: []string{"PRAGMA max_page_count = 1"},
			query: "INSERT INTO journals VALUES (hex(zeroblob(100000)), 0, '')"},
		{name: "read-only", code: sqlite3.SQLITE_READONLY, before: []string{"PRAGMA query_only = 1"},
			query: "INSERT INTO journals VALUES ('a', 0, '')"},
		{name: "no database", code: sqlite3.SQLITE_NOTADB, query: "SELECT * FROM journals",
			spoil: func(t *testing.T, path string) { writeOver(t, path, 0, strings.Repeat("garbage ", 512)) }},
		{name: "damaged", code: sqlite3.SQLITE_CORRUPT, query: "SELECT * FROM events",
			spoil: func(t *testing.T, path string) { writeOver(t, path, 4096, strings.Repeat("\xff", 1<<16)) }},
		{name: "another schema", code: sqlite3.SQLITE_ERROR, query: "SELECT * FROM nowhere"},
		{name: "a constraint", code: sqlite3.SQLITE_CONSTRAINT, query: "INSERT INTO journals VALUES (NULL, 0, '')"},
	} {
		t.Run(w.name, func(t *testing.T) {
			path := testDatabase(t, 20)
			if w.spoil != nil {
				w.spoil(t, path)
			}
			db := must.Get(sql.Open("sqlite", Dsn(path)))(t)
			defer db.Close()
			db.SetMaxOpenConns(1)
			c := openTestConnection(t, path)
			run := func(query string) (direct, driver error) {
				_, driver = db.Exec(query)
				return c.Exec(query), driver
			}
			for _, query := range w.before {
				if direct, driver := run(query); direct != nil || driver != nil {
					t.Fatal(direct, driver)
				}
			}
			direct, driver := run(w.query)
			code, ok := CodeOf(direct)
			want, _ := CodeOf(driver)
			if !ok || code != want || code&0xff != w.code {
				t.Errorf("the connection reports %v, the driver %v; want code %d", direct, driver, w.code)
			}
			if IsDamaged(direct) != IsDamaged(driver) || IsLocked(direct) != IsLocked(driver) ||
				IsTransient(direct) != IsTransient(driver) || NoTable(direct) != NoTable(driver) {
				t.Errorf("%v and %v are not classified alike", direct, driver)
			}
		})
	}
}

// openTestConnection opens a connection until the test ends.
func openTestConnection(t *testing.T, path string) *Connection {
	t.Helper()
	c := must.Get(OpenConnection(path))(t)
	t.Cleanup(c.Close)
	return c
}

// writeOver overwrites a part of a file in place.
func writeOver(t *testing.T, path string, at int64, text string) {
	t.Helper()
	f := must.Get(os.OpenFile(path, os.O_RDWR, 0))(t)
	defer f.Close()
	must.Get(f.WriteAt([]byte(text), at))(t)
}

func TestAStatementReportsSQLitesCode(t *testing.T) {
	s := openStatement(t, InsertRow)
	for i := range s.Args {
		must.Do(t, s.BindText(i, ""))
	}
	if err := s.Run(); !IsMismatch(err) {
		t.Errorf("a text as the number of a row: %v", err)
	}
	for _, i := range numbers {
		must.Do(t, s.BindNumber(i, 1))
	}
	if err := s.Run(); err != nil {
		t.Fatalf("a row after one that failed: %v", err)
	}
	if err := s.Run(); !IsSeqConflict(err) {
		t.Errorf("a second row 1: %v, want the code %d", err, sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY)
	}
	if _, err := s.Prepare("SELECT x FROM nowhere"); !NoTable(err) {
		t.Errorf("a statement without its table: %v", err)
	}
	if _, err := OpenConnection(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("a database that does not exist was opened")
	}
}

// A number that SQLite has not accepted is not taken for bound, and one that is bound is not bound again.
func TestANumberThatIsNotAcceptedIsNotBound(t *testing.T) {
	s := openStatement(t, "SELECT ?")
	must.Do(t, s.BindNumber(0, 1))
	if row, err := s.Step(); err != nil || !row {
		t.Fatal(row, err)
	}
	if err := s.BindNumber(0, 1); err != nil { // nothing to do, also while the statement runs
		t.Errorf("the number that is bound: %v", err)
	}
	for range 2 {
		if err := s.BindNumber(0, 2); err == nil {
			t.Error("a number was bound while the statement runs")
		}
	}
	s.Reset()
	must.Do(t, s.BindNumber(0, 2))
	if row, err := s.Step(); err != nil || !row {
		t.Fatal(row, err)
	}
	if n, ok := s.Number(0); n != 2 || !ok {
		t.Errorf("the argument is %d, %v; want 2", n, ok)
	}
	s.Reset()
}
