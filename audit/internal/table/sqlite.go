package table

import (
	"errors"
	"fmt"
	"math"
	"time"
	"unsafe"

	"modernc.org/libc"
	sqlite3 "modernc.org/sqlite/lib"
)

// Connection is a connection to a database through the C interface of the driver, for one goroutine at a time: the
// one that commits rows, or one that counts them. database/sql and the driver behind it convert, copy and free every
// value of every row, which costs more than the row itself: for a row that is committed 2 of 12 µs, which the goal of
// A64 needs. To count a million rows as stats does takes 1.2 s of processor time here, and 2.5 s with sql.RawBytes
// and two goroutines; as summary does 2.7 and 6.0 s (2026-11-27, load 13). GROUP BY takes 3 s and cannot be split.
// Other connections of this process may have the same file open: all of them share the library, which keeps the locks
// of a process, so that closing one connection releases no lock of another.
//
// All memory that SQLite is given is allocated by libc, outside of Go's heap.
type Connection struct {
	Tls        *libc.TLS
	Db         uintptr
	statements []*Statement
}

// sqliteError is an error of SQLite with its extended code.
type sqliteError struct {
	code int
	text string
}

func (e *sqliteError) Error() string { return e.text }

// Code returns the extended result code.
func (e *sqliteError) Code() int { return e.code }

// CodeOf returns the extended result code of an error of SQLite, from a connection or from the driver.
func CodeOf(err error) (code int, ok bool) {
	var coded interface {
		error
		Code() int
	}
	if !errors.As(err, &coded) {
		return 0, false
	}
	return coded.Code(), true
}

// OpenConnection opens a database that exists.
func OpenConnection(path string) (*Connection, error) {
	return openWith(path, sqlite3.SQLITE_OPEN_READWRITE)
}

// openReadOnly opens a database that exists, by its URI.
func openReadOnly(uri string) (*Connection, error) {
	return openWith(uri, sqlite3.SQLITE_OPEN_READONLY|sqlite3.SQLITE_OPEN_URI)
}

func openWith(path string, flags int32) (*Connection, error) {
	name, err := libc.CString(path)
	if err != nil {
		return nil, err
	}
	c := &Connection{Tls: libc.NewTLS()}
	err = c.output(func(db uintptr) int32 {
		// NOMUTEX: one goroutine at a time uses it.
		return sqlite3.Xsqlite3_open_v2(c.Tls, name, db, flags|sqlite3.SQLITE_OPEN_NOMUTEX, 0)
	}, &c.Db)
	libc.Xfree(c.Tls, name) // SQLite has a copy
	if err == nil {
		err = c.check(sqlite3.Xsqlite3_extended_result_codes(c.Tls, c.Db, 1))
	}
	if err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// output calls f with the address of a pointer, and stores what f puts there, even if it fails.
func (c *Connection) output(f func(to uintptr) int32, result *uintptr) error {
	to := libc.Xcalloc(c.Tls, 1, pointerSize)
	if to == 0 {
		return c.check(sqlite3.SQLITE_NOMEM)
	}
	defer libc.Xfree(c.Tls, to)
	code := f(to)
	*result = *(*uintptr)(at(to))
	return c.check(code)
}

// pointerSize is the size of a pointer of C.
const pointerSize = libc.Tsize_t(unsafe.Sizeof(uintptr(0)))

// at returns an address outside of Go's heap as a pointer.
func at(address uintptr) unsafe.Pointer {
	return *(*unsafe.Pointer)(unsafe.Pointer(&address)) //nolint:gosec // libc has allocated it, or SQLite
}

// bytesAt returns n bytes of memory outside of Go's heap.
func bytesAt(address uintptr, n int) []byte {
	return unsafe.Slice((*byte)(at(address)), n) //nolint:gosec // as above
}

// check returns the error of a result code; nil for SQLITE_OK.
func (c *Connection) check(code int32) error {
	if code == sqlite3.SQLITE_OK {
		return nil
	}
	text := libc.GoString(sqlite3.Xsqlite3_errstr(c.Tls, code))
	if c.Db != 0 {
		if why := libc.GoString(sqlite3.Xsqlite3_errmsg(c.Tls, c.Db)); why != text {
			text += ": " + why
		}
	}
	return &sqliteError{int(code), fmt.Sprintf("%s (%d)", text, code)}
}

// wait sets how long a transaction waits for locks.
func (c *Connection) wait(span time.Duration) error {
	ms := min(span.Milliseconds(), math.MaxInt32)
	return c.check(sqlite3.Xsqlite3_busy_timeout(c.Tls, c.Db, int32(ms))) //nolint:gosec // bounded above
}

// shrink drops the pages that are cached.
func (c *Connection) shrink() error { return c.check(sqlite3.Xsqlite3_db_release_memory(c.Tls, c.Db)) }

// Exec runs one statement, and drops its rows.
func (c *Connection) Exec(query string) error {
	s, err := c.Prepare(query)
	if err != nil {
		return err
	}
	defer func() {
		s.close()
		c.statements = c.statements[:len(c.statements)-1]
	}()
	return s.Run()
}

// Close closes the connection and its statements. An open transaction is rolled back. Nothing may be called
// afterwards: the memory is free.
func (c *Connection) Close() {
	for _, s := range c.statements {
		s.close()
	}
	c.statements = nil
	_ = sqlite3.Xsqlite3_close_v2(c.Tls, c.Db)
	c.Tls.Close()
}
