package audit

import (
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"modernc.org/sqlite" // the only driver; its name is "sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// There is no index but seq's: each would double the pages that a commit
// writes, and every request waits for one. Get finds an id by its time.
const schema = `
CREATE TABLE IF NOT EXISTS events (
  seq INTEGER PRIMARY KEY, id TEXT NOT NULL, ts TEXT NOT NULL, event TEXT NOT NULL, session_id TEXT NOT NULL,
  source TEXT NOT NULL, decision TEXT NOT NULL, reason TEXT NOT NULL, connector_fqn TEXT NOT NULL, connector_version TEXT NOT NULL,
  tool TEXT NOT NULL, operation TEXT NOT NULL, binding TEXT NOT NULL, method TEXT NOT NULL, scheme TEXT NOT NULL, host TEXT NOT NULL,
  port INTEGER NOT NULL, path TEXT NOT NULL, http_version TEXT NOT NULL, status INTEGER NOT NULL, request_bytes INTEGER NOT NULL,
  response_bytes INTEGER NOT NULL, redactions INTEGER NOT NULL, duration_us INTEGER NOT NULL, fields TEXT NOT NULL,
  prev_hash TEXT NOT NULL, hash TEXT NOT NULL
) STRICT`

const columns = `seq, id, ts, event, session_id, source, decision, reason, connector_fqn, connector_version, tool, operation, binding,
  method, scheme, host, port, path, http_version, status, request_bytes, response_bytes, redactions, duration_us, fields, prev_hash, hash`

const columnCount = 27

const placeholders = `(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)`

const insertRow = `INSERT INTO events (` + columns + `) VALUES ` + placeholders

const selectHead = `SELECT seq, ts, hash FROM events ORDER BY seq DESC LIMIT 1`

// ErrUnavailable is the log that cannot be written now. Whoever gets it must
// not do what it wanted to record.
var ErrUnavailable = errors.New("the audit log cannot be written")

// Options say how the log is kept. The zero value works.
type Options struct {
	// Durability is "normal" (default: a committed row survives the death of
	// the process) or "full" (and a power cut).
	Durability string
}

// Log appends to and reads one audit.db. Several processes may have the same
// file open. All methods are safe for concurrent use.
type Log struct {
	path    string
	opts    Options
	db      *sql.DB
	reading sync.RWMutex // db, for others than whoever leads
	file    os.FileInfo  // what db has open
	head    *headFile
	tx      *transactor // of whoever leads; nil: made at the next commit

	writer
	checkpoints *checkpointer
}

// busyTimeout is how long a transaction waits for another process's.
const busyTimeout = 4 * time.Second

// Open opens or creates the log for appending.
func Open(path string, opts Options) (*Log, error) {
	if opts.Durability != "" && opts.Durability != "normal" && opts.Durability != "full" {
		return nil, fmt.Errorf("open the audit log: durability is %q; it must be normal or full", opts.Durability)
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600) // SQLite would obey the umask
	if err != nil {
		return nil, fmt.Errorf("open the audit log: %w", err)
	}
	if err := f.Close(); err != nil {
		return nil, fmt.Errorf("open the audit log: %w", err)
	}
	l := &Log{path: path, opts: opts, head: &headFile{path: filepath.Join(filepath.Dir(path), "audit.head")}}
	l.writer.init(l)
	if l.db, err = l.connect(); err != nil {
		return nil, err
	}
	l.startCheckpoints()
	return l, nil
}

func (l *Log) connect() (*sql.DB, error) {
	synchronous := "NORMAL"
	if l.opts.Durability == "full" {
		synchronous = "FULL"
	}
	db, err := sql.Open("sqlite", dsn(l.path)+fmt.Sprintf("?_txlock=immediate&_pragma=busy_timeout(%d)&_pragma=journal_mode(WAL)&_pragma=wal_autocheckpoint(0)&_pragma=synchronous(%s)",
		busyTimeout.Milliseconds(), synchronous))
	if err != nil {
		return nil, fmt.Errorf("open the audit log: %w", err)
	}
	db.SetMaxOpenConns(4)
	err = create(db)
	if err == nil {
		l.file, err = os.Stat(l.path)
	}
	if err != nil {
		_ = db.Close()
		return nil, fmt.Errorf("open the audit log: %w", err)
	}
	return db, nil
}

// create makes the table where it is missing. Of several processes that turn
// a new file to WAL at once, all but one hear SQLITE_BUSY at once, whatever
// the busy timeout is: waiting for each other they would never end. So they
// try again.
func create(db *sql.DB) error {
	for end := time.Now().Add(busyTimeout); ; time.Sleep(5 * time.Millisecond) {
		_, err := db.Exec(schema)
		var fault *sqlite.Error
		if !errors.As(err, &fault) || fault.Code()&0xff != sqlite3.SQLITE_BUSY || time.Now().After(end) {
			return err
		}
	}
}

// OpenReader opens the log for reading. It never creates it: a log that is
// not there gives an error that wraps fs.ErrNotExist.
func OpenReader(path string) (*Log, error) {
	if _, err := os.Stat(path); err != nil {
		return nil, fmt.Errorf("open the audit log: %w", err)
	}
	db, err := sql.Open("sqlite", dsn(path)+"?mode=ro&_pragma=busy_timeout(2000)")
	if err != nil {
		return nil, fmt.Errorf("open the audit log: %w", err)
	}
	return &Log{path: path, db: db, head: &headFile{path: filepath.Join(filepath.Dir(path), "audit.head")}}, nil
}

// Close writes what is queued and closes the log.
func (l *Log) Close() error {
	lost := l.writer.close()
	if l.checkpoints != nil {
		l.checkpoints.stop()
	}
	if l.tx != nil {
		l.tx.close()
	}
	l.head.close()
	return errors.Join(lost, l.db.Close())
}

// commit writes a group in one transaction: all rows or none. A database that
// was removed or replaced under us is noticed here, and opened anew.
func (l *Log) commit(group []*Row) error {
	if err := l.sameFile(); err != nil {
		return err
	}
	if l.tx == nil {
		tx, err := newTransactor(l.db)
		if err != nil {
			return err
		}
		l.tx = tx
	}
	if err := l.tx.write(group); err != nil {
		l.tx.close() // whatever was wrong with it, the next one is new
		l.tx = nil
		return err
	}
	last := group[len(group)-1]
	l.head.advance(last.Seq, last.Hash)
	l.committed(len(group))
	return nil
}

// commitOrFail is commit, a panic of which is an error: whoever leads must give
// the lead away.
func (l *Log) commitOrFail(group []*Row) (err error) {
	err = errors.New("commit: it panicked")
	defer func() {
		if recover() != nil && l.tx != nil {
			l.tx.close()
			l.tx = nil
		}
	}()
	return l.commit(group)
}

// sameFile reopens the database when the file at its path is not the one that
// is open: rows written to an unlinked file would be lost.
func (l *Log) sameFile() error {
	if now, err := os.Stat(l.path); err == nil && os.SameFile(now, l.file) {
		return nil
	}
	f, err := os.OpenFile(l.path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	db, err := l.connect()
	if err != nil {
		return err
	}
	if l.tx != nil {
		l.tx.close()
		l.tx = nil
	}
	l.reading.Lock()
	old := l.db
	l.db = db
	l.reading.Unlock()
	_ = old.Close()
	return nil
}

func (l *Log) database() *sql.DB {
	l.reading.RLock()
	defer l.reading.RUnlock()
	return l.db
}

// dsn is the path as SQLite's URI filename.
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
