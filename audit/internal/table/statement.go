package table

import (
	"math"

	"modernc.org/libc"
	sqlite3 "modernc.org/sqlite/lib"
)

// Statement is a prepared statement of a connection. An argument stays bound until it is bound to something else: most
// columns of a session's rows have the value that they have in the row before.
type Statement struct {
	*Connection
	handle uintptr
	Args   []argument
}

// argument is what is bound to a parameter.
type argument struct {
	kind   argumentKind
	number int64
	memory uintptr // for texts, size bytes of libc; 0: none
	Size   int
	length int // of the text
}

type argumentKind byte

const (
	unbound argumentKind = iota
	boundNumber
	boundText
)

const (
	// minText is the size of the memory for a short text, and KeptText the most that is kept for another one.
	minText  = 64
	KeptText = 64 << 10
)

// Prepare returns a statement, which close closes too.
func (c *Connection) Prepare(query string) (*Statement, error) {
	text, err := libc.CString(query)
	if err != nil {
		return nil, err
	}
	defer libc.Xfree(c.Tls, text)
	s := &Statement{Connection: c}
	err = c.output(func(to uintptr) int32 { return sqlite3.Xsqlite3_prepare_v2(c.Tls, c.Db, text, -1, to, 0) }, &s.handle)
	if err != nil {
		return nil, err
	}
	s.Args = make([]argument, sqlite3.Xsqlite3_bind_parameter_count(c.Tls, s.handle))
	c.statements = append(c.statements, s)
	return s, nil
}

// BindNumber binds the parameter i, from 0.
func (s *Statement) BindNumber(i int, v int64) error {
	a := &s.Args[i]
	if a.kind == boundNumber && a.number == v {
		return nil
	}
	a.kind = unbound                                                    // until SQLite has accepted it
	code := sqlite3.Xsqlite3_bind_int64(s.Tls, s.handle, int32(i)+1, v) //nolint:gosec // SQLite bounds it
	if code == sqlite3.SQLITE_OK {
		a.kind, a.number = boundNumber, v
	}
	return s.check(code)
}

// BindText binds the parameter i, from 0, to a copy of v.
func (s *Statement) BindText(i int, v string) error {
	a := &s.Args[i]
	if a.kind == boundText && string(a.text()) == v {
		return nil
	}
	a.kind = unbound // until SQLite has accepted it: a row must not get the argument of another one
	if a.memory == 0 || len(v) > a.Size || a.Size > KeptText {
		if err := s.reserve(a, len(v)); err != nil {
			return err
		}
	}
	a.length = len(v)
	copy(a.text(), v)
	// The memory stays as it is until the parameter is bound again: SQLite need not copy it.
	code := sqlite3.Xsqlite3_bind_text64(s.Tls, s.handle, int32(i)+1, a.memory, //nolint:gosec // as above
		sqlite3.Tsqlite3_uint64(len(v)), sqlite3.SQLITE_STATIC, sqlite3.SQLITE_UTF8)
	if code == sqlite3.SQLITE_OK {
		a.kind = boundText
	}
	return s.check(code)
}

// text returns the memory of the text.
func (a *argument) text() []byte { return bytesAt(a.memory, a.length) }

// reserve replaces the memory of a by one for a text of n bytes.
func (s *Statement) reserve(a *argument, n int) error {
	if n > math.MaxInt32 {
		return s.check(sqlite3.SQLITE_TOOBIG)
	}
	libc.Xfree(s.Tls, a.memory)
	a.memory, a.Size = 0, 0
	size := max(minText, n+n/4)
	if a.memory = libc.Xmalloc(s.Tls, libc.Tsize_t(size)); a.memory == 0 {
		return s.check(sqlite3.SQLITE_NOMEM)
	}
	a.Size = size
	return nil
}

// Run executes the statement, and drops its rows.
func (s *Statement) Run() (err error) {
	for more := true; more && err == nil; {
		more, err = s.Step()
	}
	s.Reset()
	return err
}

// Step executes the statement up to its next row, and reports whether there is one. reset has to follow.
func (s *Statement) Step() (bool, error) {
	switch code := sqlite3.Xsqlite3_step(s.Tls, s.handle); code {
	case sqlite3.SQLITE_ROW:
		return true, nil
	case sqlite3.SQLITE_DONE:
		return false, nil
	default:
		return false, s.check(code)
	}
}

// Reset ends an execution. Its result is the error that step has returned.
func (s *Statement) Reset() { _ = sqlite3.Xsqlite3_reset(s.Tls, s.handle) }

// Number returns a column of the row, from 0; ok is false if it is not a number.
func (s *Statement) Number(i int32) (v int64, ok bool) {
	ok = sqlite3.Xsqlite3_column_type(s.Tls, s.handle, i) == sqlite3.SQLITE_INTEGER
	return sqlite3.Xsqlite3_column_int64(s.Tls, s.handle, i), ok
}

// String returns a column of the row, from 0; ok is false if it is not a text.
func (s *Statement) String(i int32) (v string, ok bool) {
	if sqlite3.Xsqlite3_column_type(s.Tls, s.handle, i) != sqlite3.SQLITE_TEXT {
		return "", false
	}
	text := sqlite3.Xsqlite3_column_text(s.Tls, s.handle, i)
	n := sqlite3.Xsqlite3_column_bytes(s.Tls, s.handle, i)
	return string(bytesAt(text, int(n))), true
}

// close finalizes the statement and frees its arguments.
func (s *Statement) close() {
	_ = sqlite3.Xsqlite3_finalize(s.Tls, s.handle)
	for i := range s.Args {
		libc.Xfree(s.Tls, s.Args[i].memory)
	}
}
