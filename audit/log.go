package audit

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"modernc.org/sqlite" // the only driver; its name is "sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

const schema = `
CREATE TABLE IF NOT EXISTS events (
  seq INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, ts TEXT NOT NULL, event TEXT NOT NULL, session_id TEXT NOT NULL,
  source TEXT NOT NULL, decision TEXT NOT NULL, reason TEXT NOT NULL, connector_fqn TEXT NOT NULL, connector_version TEXT NOT NULL,
  tool TEXT NOT NULL, operation TEXT NOT NULL, binding TEXT NOT NULL, method TEXT NOT NULL, scheme TEXT NOT NULL, host TEXT NOT NULL,
  port INTEGER NOT NULL, path TEXT NOT NULL, http_version TEXT NOT NULL, status INTEGER NOT NULL, request_bytes INTEGER NOT NULL,
  response_bytes INTEGER NOT NULL, redactions INTEGER NOT NULL, duration_us INTEGER NOT NULL, fields TEXT NOT NULL,
  prev_hash TEXT NOT NULL, hash TEXT NOT NULL
) STRICT`

const columns = `seq, id, ts, event, session_id, source, decision, reason, connector_fqn, connector_version, tool, operation, binding,
  method, scheme, host, port, path, http_version, status, request_bytes, response_bytes, redactions, duration_us, fields, prev_hash, hash`

const insertRow = `INSERT INTO events (` + columns + `) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)`

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
	path string
	opts Options
	db   *sql.DB
	head *headFile
	tx   *transactor // of the writing goroutine; nil: made at the next commit

	queue   chan *pending
	closing chan struct{}
	once    sync.Once
	writer  sync.WaitGroup
}

// pending is a row on its way, and where its writer waits.
type pending struct {
	row     Row
	done    chan error // nil: nobody waits
	barrier bool       // no row: whoever waits wants those before it committed
}

// maxGroup is the most rows in one transaction.
const maxGroup = 256

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
	l := &Log{path: path, opts: opts, head: &headFile{path: filepath.Join(filepath.Dir(path), "audit.head")},
		queue: make(chan *pending, 4*maxGroup), closing: make(chan struct{})}
	if l.db, err = l.connect(); err != nil {
		return nil, err
	}
	l.writer.Go((&writer{l: l}).run)
	return l, nil
}

func (l *Log) connect() (*sql.DB, error) {
	synchronous := "NORMAL"
	if l.opts.Durability == "full" {
		synchronous = "FULL"
	}
	db, err := sql.Open("sqlite", dsn(l.path)+fmt.Sprintf("?_txlock=immediate&_pragma=busy_timeout(%d)&_pragma=journal_mode(WAL)&_pragma=synchronous(%s)",
		busyTimeout.Milliseconds(), synchronous))
	if err != nil {
		return nil, fmt.Errorf("open the audit log: %w", err)
	}
	db.SetMaxOpenConns(4)
	if err := create(db); err != nil {
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
	return &Log{path: path, db: db, head: &headFile{path: filepath.Join(filepath.Dir(path), "audit.head")}, closing: make(chan struct{})}, nil
}

// Close writes what is queued and closes the log.
func (l *Log) Close() error {
	l.once.Do(func() { close(l.closing) })
	l.writer.Wait()
	if l.tx != nil {
		l.tx.close()
	}
	l.head.close()
	return l.db.Close()
}

// Append adds one row and returns it, complete, when it is committed. ID and
// TS are filled in when they are empty; Seq and the hashes always are. When
// ctx ends first, the row may or may not be committed. Errors wrap
// ErrUnavailable.
func (l *Log) Append(ctx context.Context, r Row) (Row, error) {
	p := &pending{row: r, done: make(chan error, 1)}
	if err := l.enqueue(ctx, p); err != nil {
		return r, err
	}
	select {
	case err := <-p.done:
		if err != nil {
			return r, fmt.Errorf("%w: %w", ErrUnavailable, err)
		}
		return p.row, nil
	case <-ctx.Done():
		return r, fmt.Errorf("%w: %w", ErrUnavailable, ctx.Err())
	}
}

// AppendSoon adds one row that nothing waits for: it is committed together
// with the next one, at the latest after lingering, and before any read
// through this Log. A row whose commit fails is tried again with every later
// one. The death of the process may take the rows of its last lingering.
func (l *Log) AppendSoon(ctx context.Context, r Row) error {
	if r.ID == "" {
		r.ID = NewID()
	}
	if r.TS.IsZero() {
		r.TS = time.Now()
	}
	return l.enqueue(ctx, &pending{row: r})
}

func (l *Log) enqueue(ctx context.Context, p *pending) error {
	if l.queue == nil {
		return fmt.Errorf("%w: it is open for reading", ErrUnavailable)
	}
	select {
	case l.queue <- p:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", ErrUnavailable, ctx.Err())
	case <-l.closing:
		return fmt.Errorf("%w: it is closed", ErrUnavailable)
	}
}

// settle waits until what was added before is committed, or cannot be.
func (l *Log) settle(ctx context.Context) {
	if l.queue == nil {
		return
	}
	p := &pending{barrier: true, done: make(chan error, 1)}
	if l.enqueue(ctx, p) != nil {
		return
	}
	select {
	case <-p.done:
	case <-ctx.Done():
	}
}

// commit writes a group in one transaction: all rows or none. A database that
// was removed or replaced under us is noticed here, and opened anew.
func (l *Log) commit(group []*pending) error {
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
	var last *Row
	err := l.tx.do(func(head head, insert func(*Row, []byte) error) error {
		for _, p := range group {
			head.seq++
			fields, err := p.row.complete(head.seq, head.ts)
			if err != nil {
				return err
			}
			if err := p.row.chain(head.hash, fields); err != nil {
				return err
			}
			if err := insert(&p.row, fields); err != nil {
				return err
			}
			head.hash, head.ts, last = p.row.Hash, p.row.TS, &p.row
		}
		return nil
	})
	if err != nil {
		l.tx.close() // whatever was wrong with it, the next one is new
		l.tx = nil
		return err
	}
	l.head.advance(last.Seq, last.Hash)
	return nil
}

// complete fills in what the writer of a row left open and gives its fields
// as JSON. A clock that stands before the last row's is marked, not mended.
func (r *Row) complete(seq int64, last time.Time) ([]byte, error) {
	r.Seq = seq
	if r.ID == "" {
		r.ID = NewID()
	}
	if r.TS.IsZero() {
		r.TS = time.Now()
	}
	r.TS = r.TS.UTC()
	fields := make(map[string]any, len(r.Fields)+1)
	for k, v := range r.Fields {
		fields[k] = v
	}
	// A second is what two processes' rows may be out of order by.
	if r.TS.Before(last.Add(-time.Second)) {
		fields["clock"] = "backwards"
	}
	r.Fields = fields
	return json.Marshal(fields)
}

// sameFile reopens the database when the file at its path is not the one that
// is open: rows written to an unlinked file would be lost.
func (l *Log) sameFile() error {
	if _, err := os.Stat(l.path); err == nil {
		return nil
	}
	if l.tx != nil {
		l.tx.close()
		l.tx = nil
	}
	_ = l.db.Close()
	f, err := os.OpenFile(l.path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	l.db, err = l.connect()
	return err
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
