// Package table is audit.db: the only package that knows SQLite.
//
// [Open] opens the database for writing, and [Writer] commits rows, one transaction for each group (writer.go). Readers
// take a snapshot: snapshot.go and find.go list rows, groups.go counts them. A file beside the database, the index,
// leads them to the rows that a [Filter] selects; index.go has what it promises, and why it is not SQLite's. Rows are
// written and counted through the C interface of the driver; sqlite.go has what that saves. [Turns] is the queue in
// which processes wait until they may write.
package table

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"time"

	"github.com/ALRubinger/aileron/audit/internal/chain"

	_ "modernc.org/sqlite" // the driver "sqlite"
)

// Database is audit.db as one process has it open.
type Database struct {
	path       string
	durability string

	reading sync.RWMutex // guards db for goroutines other than the one that writes
	db      *sql.DB

	// Owned by the goroutine that writes.
	file     os.FileInfo                // the file that db has open
	sidecars [len(Sidecars)]os.FileInfo // the files beside it
	Replaced bool                       // file was replaced by another one
}

// Open opens the database for writing, and creates it if there is none. Locks are waited for for span at most.
func Open(path, durability string, span time.Duration) (*Database, error) {
	d := &Database{path: path, durability: durability}
	return d, d.connect(span)
}

// OpenForReading opens a database that exists for reading.
func OpenForReading(path string) (*Database, error) {
	readOnly, err := immutable(path)
	if err != nil {
		return nil, err
	}
	db, err := sql.Open("sqlite", Dsn(path)+"?mode=ro&_pragma=busy_timeout(2000)"+readOnly)
	return &Database{path: path, db: db}, err
}

func (d *Database) connect(span time.Duration) error {
	if err := CheckSchema(d.path); err != nil {
		return fmt.Errorf("open the audit log: %w", err)
	}
	if err := CreateFile(d.path); err != nil {
		return fmt.Errorf("open the audit log: %w", err)
	}
	db, err := sql.Open("sqlite", Dsn(d.path)+fmt.Sprintf("?_txlock=immediate&_pragma=busy_timeout(%d)"+
		"&_pragma=journal_mode(WAL)&_pragma=wal_autocheckpoint(0)&_pragma=synchronous(%s)",
		span.Milliseconds(), synchronous(d.durability)))
	if err != nil {
		return fmt.Errorf("open the audit log: %w", err)
	}
	db.SetMaxOpenConns(4)
	err = Create(db, span)
	if err == nil {
		d.file, err = os.Stat(d.path)
	}
	for i, suffix := range Sidecars {
		d.sidecars[i], _ = os.Stat(d.path + suffix) // nil: it is not compared
	}
	if err != nil {
		_ = db.Close()
		return fmt.Errorf("open the audit log: %w", err)
	}
	d.db = db
	return nil
}

// synchronous returns the setting of SQLite for Options.Durability.
func synchronous(durability string) string {
	if durability == "full" {
		return "FULL"
	}
	return "NORMAL"
}

// CreateFile creates the file with mode 0600, where SQLite would apply the umask. It never opens a file that exists:
// closing it would release the POSIX locks that other connections of this process hold on it.
func CreateFile(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return f.Close()
}

// Create creates the tables that do not exist. If several processes switch a new file to WAL at the same time, all
// but one get SQLITE_BUSY immediately, whatever the busy timeout is, because they would deadlock. So create retries,
// for at most span. A log that gets no triggers now, because its disk is full, is a log all the same.
func Create(db *sql.DB, span time.Duration) error {
	for end := time.Now().Add(span); ; time.Sleep(5 * time.Millisecond) {
		_, err := db.Exec(Schema + ";" + journalSchema)
		if err == nil {
			_, _ = db.Exec(triggers)
		}
		if !IsLocked(err) || time.Now().After(end) {
			return err
		}
	}
}

// Sidecars are the suffixes of the files that SQLite keeps beside the database.
var Sidecars = [...]string{"-wal", "-shm"}

// InPlace reports whether the files at the path of the database are the open ones. If fresh is set, the files beside
// it were compared a moment ago.
func (d *Database) InPlace(fresh bool) bool {
	now, err := os.Stat(d.path)
	return err == nil && os.SameFile(now, d.file) && (fresh || d.sameSidecars())
}

// Reopen opens the file that is at the path now: rows written to an unlinked file would be lost. The caller has closed
// its other connections: POSIX locks belong to the process, and closing one descriptor of a file releases the locks of
// all.
func (d *Database) Reopen(span time.Duration) error {
	now, err := os.Stat(d.path)
	d.reading.Lock()
	defer d.reading.Unlock()
	d.Replaced = d.Replaced || err == nil && d.file != nil && !os.SameFile(now, d.file)
	d.Forget()
	_ = d.db.Close()
	return d.connect(span)
}

// Forget makes the next look find another file.
func (d *Database) Forget() { d.file = nil }

// SQL returns the connections.
func (d *Database) SQL() *sql.DB {
	d.reading.RLock()
	defer d.reading.RUnlock()
	return d.db
}

func (d *Database) Close() error { return d.SQL().Close() }

// HasRow returns a *breach if the database does not have the row of h.
func (d *Database) HasRow(ctx context.Context, h chain.Head) error {
	var hash string
	err := d.SQL().QueryRowContext(ctx, SelectHash, h.Seq).Scan(&hash)
	if errors.Is(err, sql.ErrNoRows) {
		return compare(h, "", false, nil)
	}
	return compare(h, hash, true, err)
}

// Newest returns the newest row, seq 0 if there is none.
func (d *Database) Newest(ctx context.Context) (chain.Head, error) {
	h := chain.Head{Hash: chain.ZeroHash}
	var ts string
	err := d.SQL().QueryRowContext(ctx, SelectHead).Scan(&h.Seq, &ts, &h.Hash)
	if errors.Is(err, sql.ErrNoRows) {
		return h, nil
	}
	return h, err
}

// First returns the number of the first row, and the hash of the row before it; seq 0 if there is none.
func (d *Database) First(ctx context.Context) (first chain.Head, err error) {
	const query = "SELECT seq, prev_hash FROM events ORDER BY seq LIMIT 1"
	err = d.SQL().QueryRowContext(ctx, query).Scan(&first.Seq, &first.Hash)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return first, err
}

// Row returns the row with the number.
func (d *Database) Row(ctx context.Context, seq int64) (chain.Row, error) {
	r, _, err := Scan(d.SQL().QueryRowContext(ctx, "SELECT "+Columns+" FROM events WHERE seq = ?", seq))
	return r, err
}

// Course passes the rows behind the last signed head to c, and those shortly before it: at most courseRows. It returns
// the first fault, and the row before the one that does not fit, or the one that has no signed head.
func (d *Database) Course(ctx context.Context, newest int64, c *chain.Course) (
	f *chain.Fault, at chain.Head, err error,
) {
	var signed int64
	const last = "SELECT seq FROM events WHERE seq > ? AND event = ? ORDER BY seq DESC LIMIT 1"
	err = d.SQL().QueryRowContext(ctx, last, newest-courseRows, chain.EventCheckpoint).Scan(&signed)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return nil, at, err
	}
	from := max(newest-courseRows, signed-courseBefore)
	const query = "SELECT seq, event, session_id, reason, fields, hash FROM events WHERE seq > ? AND seq <= ? ORDER BY seq"
	rows, err := d.SQL().QueryContext(ctx, query, from, newest)
	if err != nil {
		return nil, at, err
	}
	defer rows.Close()
	var before chain.Head
	unsigned := map[int64]chain.Head{}
	for rows.Next() {
		var h chain.Head
		var event, session, reason, fields string
		if err := rows.Scan(&h.Seq, &event, &session, &reason, &fields, &h.Hash); err != nil {
			return nil, at, err
		}
		if h.Seq%chain.SignedEvery == 0 {
			unsigned[h.Seq] = h
		}
		if next := c.Row(h.Seq, chain.Event(event), session, reason, fields); next != nil && f == nil {
			if f, at = next, before; next.Reason == chain.ReasonUnsigned {
				at = unsigned[next.Seq]
			}
		}
		before = h
	}
	if f == nil {
		if f = c.End(); f != nil {
			at = unsigned[f.Seq]
		}
	}
	return f, at, rows.Err()
}

// courseRows and courseBefore bound the rows that Course reads: in all, and before the last signed head.
const (
	courseRows   = 4096
	courseBefore = 256
)

// IdsAfter calls f for the id of each row behind seq.
func (d *Database) IdsAfter(ctx context.Context, seq int64, f func(id string)) error {
	return d.strings(ctx, f, "SELECT id FROM events WHERE seq > ?", seq)
}

// SessionsSince calls f for each session with a row at or after t.
func (d *Database) SessionsSince(ctx context.Context, t time.Time, f func(session string)) error {
	return d.strings(ctx, f, "SELECT DISTINCT session_id FROM events WHERE ts >= ?", t.UTC().Format(chain.TimeFormat))
}

// PrunedRows calls f for the number and the fields of each row of EventPruned, the newest first, until it returns
// false. It does not use the index, which is no evidence: it must not hide the row.
func (d *Database) PrunedRows(ctx context.Context, f func(seq int64, fields string) bool) error {
	const query = "SELECT seq, fields FROM events WHERE event = ? ORDER BY seq DESC"
	rows, err := d.SQL().QueryContext(ctx, query, chain.EventPruned)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var seq int64
		var fields string
		if err := rows.Scan(&seq, &fields); err != nil {
			return err
		}
		if !f(seq, fields) {
			return nil
		}
	}
	return rows.Err()
}

// strings calls f for each text that the query returns.
func (d *Database) strings(ctx context.Context, f func(string), query string, args ...any) error {
	rows, err := d.SQL().QueryContext(ctx, query, args...)
	if err != nil {
		return fmt.Errorf("read the audit log: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			return fmt.Errorf("read the audit log: %w", err)
		}
		f(text)
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("read the audit log: %w", err)
	}
	return nil
}

// Dsn returns the path as a URI filename of SQLite.
func Dsn(path string) string {
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
func (d *Database) sameSidecars() bool {
	for i, suffix := range Sidecars {
		now, err := os.Stat(d.path + suffix)
		if d.sidecars[i] == nil {
			continue
		}
		if err != nil || !os.SameFile(now, d.sidecars[i]) {
			return false
		}
	}
	return true
}
