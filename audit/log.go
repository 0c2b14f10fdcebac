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

	queue   chan *pending
	closing chan struct{}
	once    sync.Once
	writer  sync.WaitGroup
}

// pending is a row on its way, and where its writer waits.
type pending struct {
	row  Row
	done chan error
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
	l.writer.Go(l.write)
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
	return l.db.Close()
}

// Append adds one row and returns it, complete, when it is committed. ID and
// TS are filled in when they are empty; Seq and the hashes always are. When
// ctx ends first, the row may or may not be committed. Errors wrap
// ErrUnavailable.
func (l *Log) Append(ctx context.Context, r Row) (Row, error) {
	if l.queue == nil {
		return r, fmt.Errorf("%w: it is open for reading", ErrUnavailable)
	}
	p := &pending{row: r, done: make(chan error, 1)}
	select {
	case l.queue <- p:
	case <-ctx.Done():
		return r, fmt.Errorf("%w: %w", ErrUnavailable, ctx.Err())
	case <-l.closing:
		return r, fmt.Errorf("%w: it is closed", ErrUnavailable)
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

// write commits what is queued, all that waits in one transaction. Alone, a
// row waits for nobody.
func (l *Log) write() {
	group := make([]*pending, 0, maxGroup)
	for {
		group = group[:0]
		select {
		case p := <-l.queue:
			group = append(group, p)
		case <-l.closing:
			select {
			case p := <-l.queue:
				group = append(group, p)
			default:
				return
			}
		}
	more:
		for len(group) < maxGroup {
			select {
			case p := <-l.queue:
				group = append(group, p)
			default:
				break more
			}
		}
		err := l.commit(group)
		for _, p := range group {
			p.done <- err
		}
	}
}

// commit writes a group in one transaction: all rows or none. A database that
// was removed or replaced under us is noticed here, and opened anew.
func (l *Log) commit(group []*pending) error {
	if err := l.sameFile(); err != nil {
		return err
	}
	tx, err := l.db.Begin()
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // after Commit it does nothing
	var seq int64
	var lastTS string
	prev := zeroHash
	if err := tx.QueryRow(selectHead).Scan(&seq, &lastTS, &prev); err != nil && !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	insert, err := tx.Prepare(insertRow)
	if err != nil {
		return err
	}
	defer insert.Close()
	for _, p := range group {
		seq++
		fields, err := p.row.complete(seq, lastTS)
		if err != nil {
			return err
		}
		if err := p.row.chain(prev, fields); err != nil {
			return err
		}
		if _, err := insert.Exec(p.row.values(fields)...); err != nil {
			return err
		}
		prev, lastTS = p.row.Hash, p.row.TS.Format(timeFormat)
	}
	if err := tx.Commit(); err != nil {
		return err
	}
	l.head.advance(seq, prev)
	return nil
}

// complete fills in what the writer of a row left open and gives its fields
// as JSON. A clock that stands before the last row's is marked, not mended.
func (r *Row) complete(seq int64, lastTS string) ([]byte, error) {
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
	if last, err := time.Parse(timeFormat, lastTS); err == nil && r.TS.Before(last.Add(-time.Second)) {
		fields["clock"] = "backwards"
	}
	r.Fields = fields
	return json.Marshal(fields)
}

func (r *Row) values(fields []byte) []any {
	return []any{r.Seq, r.ID, r.TS.Format(timeFormat), r.Event, r.SessionID, r.Source, r.Decision, r.Reason, r.ConnectorFQN, r.ConnectorVersion,
		r.Tool, r.Operation, r.Binding, r.Method, r.Scheme, r.Host, r.Port, r.Path, r.HTTPVersion, r.Status, r.RequestBytes, r.ResponseBytes,
		r.Redactions, r.DurationUS, string(fields), r.PrevHash, r.Hash}
}

// sameFile reopens the database when the file at its path is not the one that
// is open: rows written to an unlinked file would be lost.
func (l *Log) sameFile() error {
	if _, err := os.Stat(l.path); err == nil {
		return nil
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
