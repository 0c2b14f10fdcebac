package table

import (
	"errors"
	"os"

	"github.com/ALRubinger/aileron/internal/system"
)

// errUnmerged is returned for a log on a read-only file system whose write-ahead log is not empty: SQLite could not
// read it without an index.
var errUnmerged = errors.New("its file system is read-only, and its last rows are still in audit.db-wal; " +
	"copy audit.db and audit.db-wal to another home, and read that")

// immutable returns the parameter with which SQLite opens a log on a read-only file system, and "" for any other.
// SQLite cannot create the index of the write-ahead log there, and needs none if that log is empty.
func immutable(path string) (string, error) {
	if !system.IsReadOnly(path) { // or not there: SQLite finds what is wrong
		return "", nil
	}
	if wal, err := os.Stat(path + "-wal"); err == nil && wal.Size() > 0 {
		return "", errUnmerged
	}
	return "&immutable=1", nil
}
