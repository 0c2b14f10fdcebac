package audit

import (
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	_ "modernc.org/sqlite" // the driver "sqlite"
)

// connect opens the database, and creates it if there is none.
func (l *Log) connect() (*sql.DB, error) {
	if err := checkSchema(l.path); err != nil {
		return nil, fmt.Errorf("open the audit log: %w", err)
	}
	if err := createFile(l.path); err != nil {
		return nil, fmt.Errorf("open the audit log: %w", err)
	}
	db, err := sql.Open("sqlite", dsn(l.path)+fmt.Sprintf("?_txlock=immediate&_pragma=busy_timeout(%d)"+
		"&_pragma=journal_mode(WAL)&_pragma=wal_autocheckpoint(0)&_pragma=synchronous(%s)",
		l.lockWait.span().Milliseconds(), synchronous(l.opts.Durability)))
	if err != nil {
		return nil, fmt.Errorf("open the audit log: %w", err)
	}
	db.SetMaxOpenConns(4)
	err = create(db, l.lockWait.span())
	if err == nil {
		l.file, err = os.Stat(l.path)
	}
	for i, suffix := range sidecars {
		l.sidecars[i], _ = os.Stat(l.path + suffix) // nil: it is not compared
	}
	if err != nil {
		_ = db.Close()
		return nil, fmt.Errorf("open the audit log: %w", err)
	}
	return db, nil
}

// synchronous returns the setting of SQLite for Options.Durability.
func synchronous(durability string) string {
	if durability == "full" {
		return "FULL"
	}
	return "NORMAL"
}

// createFile creates the file with mode 0600, where SQLite would apply the umask. It never opens a file that exists:
// closing it would release the POSIX locks that other connections of this process hold on it.
func createFile(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return f.Close()
}

// create creates the tables that do not exist. If several processes switch a new file to WAL at the same time, all
// but one get SQLITE_BUSY immediately, whatever the busy timeout is, because they would deadlock. So create retries,
// for at most span. A log that gets no triggers now, because its disk is full, is a log all the same.
func create(db *sql.DB, span time.Duration) error {
	for end := time.Now().Add(span); ; time.Sleep(5 * time.Millisecond) {
		_, err := db.Exec(schema + ";" + journalSchema)
		if err == nil {
			_, _ = db.Exec(triggers)
		}
		if !IsLocked(err) || time.Now().After(end) {
			return err
		}
	}
}

// sidecars are the suffixes of the files that SQLite keeps beside the database.
var sidecars = [...]string{"-wal", "-shm"}

// sameFile reopens the database if the files at its path are not the open ones: rows written to an unlinked file
// would be lost.
func (l *Log) sameFile() error {
	now, err := os.Stat(l.path)
	if err == nil && os.SameFile(now, l.file) && (time.Since(l.attested) <= groupDelay || l.sameSidecars()) {
		return nil
	}
	if l.tx != nil {
		l.tx.close()
		l.tx = nil
	}
	// Close the old connections first: POSIX locks belong to the process, and closing one descriptor of a file releases
	// the locks of all.
	l.reading.Lock()
	defer l.reading.Unlock()
	l.replaced = l.replaced || err == nil && l.file != nil && !os.SameFile(now, l.file)
	l.file = nil // if reopening fails, the next commit tries again
	_ = l.db.Close()
	db, err := l.connect()
	if err != nil {
		return err
	}
	l.db = db
	return nil
}

func (l *Log) database() *sql.DB {
	l.reading.RLock()
	defer l.reading.RUnlock()
	return l.db
}

// dsn returns the path as a URI filename of SQLite.
func dsn(path string) string {
	escaped := make([]byte, 0, len(path))
	for _, c := range []byte(path) {
		if c == '%' || c == '?' || c == '#' {
			escaped = fmt.Appendf(escaped, "%%%02x", c)
			continue
		}
		escaped = append(escaped, c)
	}
	return "file:" + string(escaped)
}

// sameSidecars reports whether the write-ahead log and its index are still the files that the database has open.
func (l *Log) sameSidecars() bool {
	for i, suffix := range sidecars {
		now, err := os.Stat(l.path + suffix)
		if l.sidecars[i] == nil {
			continue
		}
		if err != nil || !os.SameFile(now, l.sidecars[i]) {
			return false
		}
	}
	return true
}
