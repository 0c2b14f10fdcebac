package table

import (
	"github.com/ALRubinger/aileron/audit/internal/chain"

	"errors"
	"strings"

	"golang.org/x/sys/unix"
	sqlite3 "modernc.org/sqlite/lib"
)

// compare compares the expected head with the hash found, or with the error of reading it, and returns a *breach if
// they do not match. An error that is no damage, such as that of a busy database, is returned as it is.
func compare(expected chain.Head, found string, exists bool, err error) error {
	switch {
	case err == nil:
		return expected.Differs(found, exists)
	case IsDamage(err):
		return expected.Unreadable()
	}
	return err
}

// ErrDamaged is returned for a row whose values do not have the types of their columns.
var ErrDamaged = errors.New("the values of the row do not have the types of the table")

// IsDamage reports whether err is caused by the content of the database's files, and not by a lock, a limit or the
// caller.
func IsDamage(err error) bool {
	code, ok := CodeOf(err)
	if !ok {
		return errors.Is(err, ErrDamaged)
	}
	switch code {
	case sqlite3.SQLITE_IOERR_READ, sqlite3.SQLITE_IOERR_SHORT_READ,
		sqlite3.SQLITE_IOERR_DATA, sqlite3.SQLITE_IOERR_CORRUPTFS:
		return true // unlike the I/O errors of a full disk
	}
	switch code & 0xff {
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_FORMAT,
		sqlite3.SQLITE_ERROR, sqlite3.SQLITE_MISMATCH:
		return true
	}
	return false
}

// IsDamaged reports whether err means that the database is damaged, so that some of its rows cannot be read.
func IsDamaged(err error) bool { return IsDamage(err) && !NoTable(err) }

// IsMismatch reports whether err means that a value does not have the type of its column.
func IsMismatch(err error) bool {
	code, ok := CodeOf(err)
	return ok && (code&0xff == sqlite3.SQLITE_CONSTRAINT || code&0xff == sqlite3.SQLITE_MISMATCH)
}

// NoTable reports whether err means that the database has no table yet: another process is creating it.
func NoTable(err error) bool {
	code, ok := CodeOf(err)
	return ok && code == sqlite3.SQLITE_ERROR && strings.Contains(err.Error(), "no such table")
}

// IsTransient reports whether err has another cause than the rows themselves, so that a retry may succeed.
func IsTransient(err error) bool {
	code, ok := CodeOf(err)
	return !ok || !IsOfRow(err) && code&0xff != sqlite3.SQLITE_MISUSE && code&0xff != sqlite3.SQLITE_RANGE
}

// IsOfRow reports whether err means that SQLite does not accept a row. The connection can be used further.
func IsOfRow(err error) bool {
	code, ok := CodeOf(err)
	if !ok {
		return false
	}
	switch code & 0xff {
	case sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_TOOBIG, sqlite3.SQLITE_MISMATCH:
		return true
	}
	return false
}

// IsLocked reports whether err means that another process holds a lock.
func IsLocked(err error) bool {
	code, ok := CodeOf(err)
	if !ok {
		return errors.Is(err, unix.EWOULDBLOCK)
	}
	return code&0xff == sqlite3.SQLITE_BUSY || code&0xff == sqlite3.SQLITE_LOCKED
}
