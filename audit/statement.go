package audit

import (
	"math"

	"modernc.org/libc"
	sqlite3 "modernc.org/sqlite/lib"
)

// statement is a prepared statement of a connection. An argument stays bound until it is bound to something else: most
// columns of a session's rows have the value that they have in the row before.
type statement struct {
	*connection
	handle uintptr
	args   []argument
}

// argument is what is bound to a parameter.
type argument struct {
	kind   argumentKind
	number int64
	memory uintptr // for texts, size bytes of libc; 0: none
	size   int
	length int // of the text
}

type argumentKind byte

const (
	unbound argumentKind = iota
	boundNumber
	boundText
)

const (
	// minText is the size of the memory for a short text, and keptText the most that is kept for another one.
	minText  = 64
	keptText = 64 << 10
)

// prepare returns a statement, which close closes too.
func (c *connection) prepare(query string) (*statement, error) {
	text, err := libc.CString(query)
	if err != nil {
		return nil, err
	}
	defer libc.Xfree(c.tls, text)
	s := &statement{connection: c}
	err = c.output(func(to uintptr) int32 { return sqlite3.Xsqlite3_prepare_v2(c.tls, c.db, text, -1, to, 0) }, &s.handle)
	if err != nil {
		return nil, err
	}
	s.args = make([]argument, sqlite3.Xsqlite3_bind_parameter_count(c.tls, s.handle))
	c.statements = append(c.statements, s)
	return s, nil
}

// bindNumber binds the parameter i, from 0.
func (s *statement) bindNumber(i int, v int64) error {
	a := &s.args[i]
	if a.kind == boundNumber && a.number == v {
		return nil
	}
	a.kind = unbound                                                    // until SQLite has accepted it
	code := sqlite3.Xsqlite3_bind_int64(s.tls, s.handle, int32(i)+1, v) //nolint:gosec // SQLite bounds it
	if code == sqlite3.SQLITE_OK {
		a.kind, a.number = boundNumber, v
	}
	return s.check(code)
}

// bindText binds the parameter i, from 0, to a copy of v.
func (s *statement) bindText(i int, v string) error {
	a := &s.args[i]
	if a.kind == boundText && string(a.text()) == v {
		return nil
	}
	a.kind = unbound // until SQLite has accepted it: a row must not get the argument of another one
	if a.memory == 0 || len(v) > a.size || a.size > keptText {
		if err := s.reserve(a, len(v)); err != nil {
			return err
		}
	}
	a.length = len(v)
	copy(a.text(), v)
	// The memory stays as it is until the parameter is bound again: SQLite need not copy it.
	code := sqlite3.Xsqlite3_bind_text64(s.tls, s.handle, int32(i)+1, a.memory, //nolint:gosec // as above
		sqlite3.Tsqlite3_uint64(len(v)), sqlite3.SQLITE_STATIC, sqlite3.SQLITE_UTF8)
	if code == sqlite3.SQLITE_OK {
		a.kind = boundText
	}
	return s.check(code)
}

// text returns the memory of the text.
func (a *argument) text() []byte { return bytesAt(a.memory, a.length) }

// reserve replaces the memory of a by one for a text of n bytes.
func (s *statement) reserve(a *argument, n int) error {
	if n > math.MaxInt32 {
		return s.check(sqlite3.SQLITE_TOOBIG)
	}
	libc.Xfree(s.tls, a.memory)
	a.memory, a.size = 0, 0
	size := max(minText, n+n/4)
	if a.memory = libc.Xmalloc(s.tls, libc.Tsize_t(size)); a.memory == 0 {
		return s.check(sqlite3.SQLITE_NOMEM)
	}
	a.size = size
	return nil
}

// run executes the statement, and drops its rows.
func (s *statement) run() (err error) {
	for more := true; more && err == nil; {
		more, err = s.step()
	}
	s.reset()
	return err
}

// step executes the statement up to its next row, and reports whether there is one. reset has to follow.
func (s *statement) step() (bool, error) {
	switch code := sqlite3.Xsqlite3_step(s.tls, s.handle); code {
	case sqlite3.SQLITE_ROW:
		return true, nil
	case sqlite3.SQLITE_DONE:
		return false, nil
	default:
		return false, s.check(code)
	}
}

// reset ends an execution. Its result is the error that step has returned.
func (s *statement) reset() { _ = sqlite3.Xsqlite3_reset(s.tls, s.handle) }

// number returns a column of the row, from 0; ok is false if it is not a number.
func (s *statement) number(i int32) (v int64, ok bool) {
	ok = sqlite3.Xsqlite3_column_type(s.tls, s.handle, i) == sqlite3.SQLITE_INTEGER
	return sqlite3.Xsqlite3_column_int64(s.tls, s.handle, i), ok
}

// string returns a column of the row, from 0; ok is false if it is not a text.
func (s *statement) string(i int32) (v string, ok bool) {
	if sqlite3.Xsqlite3_column_type(s.tls, s.handle, i) != sqlite3.SQLITE_TEXT {
		return "", false
	}
	text := sqlite3.Xsqlite3_column_text(s.tls, s.handle, i)
	n := sqlite3.Xsqlite3_column_bytes(s.tls, s.handle, i)
	return string(bytesAt(text, int(n))), true
}

// close finalizes the statement and frees its arguments.
func (s *statement) close() {
	_ = sqlite3.Xsqlite3_finalize(s.tls, s.handle)
	for i := range s.args {
		libc.Xfree(s.tls, s.args[i].memory)
	}
}
