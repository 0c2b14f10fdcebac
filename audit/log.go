package audit

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"
)

// ErrUnavailable is returned when the log cannot be written. The caller must
// not do what it wanted to record.
var ErrUnavailable = errors.New("the audit log cannot be written")

// Options configure a log. The zero value works.
type Options struct {
	// Durability is "normal" (default: a committed row survives the death of
	// the process) or "full" (and a power cut).
	Durability string
	// Session is the session that writes, for the events of the log itself. ""
	// is a command outside any session.
	Session string
	// OnBroken is called after an EventBroken is committed; nil: nothing is.
	// It must not use the log.
	OnBroken func(Row)
	// OnOutage is called when the log cannot be written, and when it can be
	// again; nil: nothing is. It must not use the log.
	OnOutage func(Outage)
	// OnLost is called with the number of rows that cannot be committed although
	// others can; nil: nothing is. It must not use the log.
	OnLost func(rows int)
	// OnDamage is called when a row of the database cannot be read, and with nil
	// when all can be again; nil: nothing is. It must not use the log.
	OnDamage func(*DamageError)
}

// Log appends to and reads one audit.db. Several processes may have the same
// file open. All methods are safe for concurrent use.
type Log struct {
	path    string
	opts    Options
	db      *sql.DB
	reading sync.RWMutex // db, for goroutines other than the leader
	head    *headFile

	// Of the leading goroutine.
	file     os.FileInfo                // what db has open
	sidecars [len(sidecars)]os.FileInfo // and beside it
	tx       *batchWriter               // nil: made at the next commit
	known    head                       // a row that the log has to have; seq 0: none
	attested time.Time                  // when the log had it
	replaced bool                       // another file came into the place of file
	broken   *Row                       // to be committed before any other row
	lockWait lockWait
	spill    *spillFile // nil: the log is no session's

	writer
	checkpoints *checkpointer
	health      *health // nil: the log is no session's
}

// Open opens or creates the log for appending.
func Open(path string, opts Options) (*Log, error) {
	if opts.Durability != "" && opts.Durability != "normal" && opts.Durability != "full" {
		return nil, fmt.Errorf("open the audit log: durability is %q; it must be normal or full", opts.Durability)
	}
	l := &Log{path: path, opts: opts, head: newHeadFile(path)}
	l.writer.init(l)
	var err error
	if l.db, err = l.connect(); err != nil {
		return nil, err
	}
	l.startCheckpoints()
	if err := l.examine(context.Background()); err != nil {
		return nil, fmt.Errorf("open the audit log: %w", errors.Join(err, l.Close()))
	}
	if l.broken != nil {
		l.writer.flush(context.Background()) // where it fails, the first row that follows brings it
	}
	l.Adopt(context.Background())
	if spillable(opts.Session) {
		if l.spill, err = reserveSpill(path, opts.Session, l.head.writer); err != nil {
			return nil, fmt.Errorf("open the audit log: %w", errors.Join(err, l.Close()))
		}
		l.startHealth()
	}
	return l, nil
}

// OpenReader opens the log for reading. It never creates it: a log that is
// not there is an error that wraps fs.ErrNotExist.
func OpenReader(path string) (*Log, error) {
	if _, err := os.Stat(path); err != nil {
		return nil, fmt.Errorf("open the audit log: %w", err)
	}
	readOnly, err := immutable(path)
	if err != nil {
		return nil, fmt.Errorf("open the audit log: %w", err)
	}
	db, err := sql.Open("sqlite", dsn(path)+"?mode=ro&_pragma=busy_timeout(2000)"+readOnly)
	if err != nil {
		return nil, fmt.Errorf("open the audit log: %w", err)
	}
	return &Log{path: path, db: db, head: newHeadFile(path)}, nil
}

// Close commits what is queued and closes the log. The error wraps a
// [LostError] when rows could not be committed.
func (l *Log) Close() error {
	l.health.close()
	l.lockWait.last.Store(true)
	lost := l.writer.close()
	if l.spill != nil {
		l.spill.close(lost != nil)
	}
	if l.checkpoints != nil {
		l.checkpoints.stop()
	}
	if l.tx != nil {
		l.tx.close()
	}
	l.head.close()
	return errors.Join(lost, l.db.Close())
}

// commit writes a group in one transaction: all rows or none. A log that is
// not the one that this process left is reported first. A database that was
// removed or replaced is noticed here, and opened anew.
func (l *Log) commit(group []*Row) (err error) {
	defer func() {
		l.lockWait.learn(err)
		if err != nil && l.tx != nil {
			l.tx.close() // whatever was wrong with it, the next one is new
			l.tx = nil
		}
	}()
	if err := l.ready(); err != nil {
		return err
	}
	err = l.write(group)
	var b *breach
	if errors.As(err, &b) {
		found := []breach{*b}
		if err = l.recordBreaches(append(found, l.others(found)...)); err == nil {
			err = l.write(group)
		}
	}
	return err
}

// ready makes the batchWriter, compares the log with what is known of it, and
// begins this writer's line of audit.head.
func (l *Log) ready() error {
	if err := l.changed(); err != nil {
		return err
	}
	if err := l.sameFile(); err != nil {
		return err
	}
	if l.tx == nil {
		tx, err := newBatchWriter(l.db)
		if err != nil {
			return err
		}
		tx.head, l.tx = l.known, tx
		l.attested = time.Time{}
	}
	if err := l.tx.wait(l.lockWait.span()); err != nil {
		return err
	}
	if err := l.attest(); err != nil {
		return err
	}
	if l.head.line.number > 0 {
		return nil
	}
	var newest head
	err := l.tx.conn.Raw(func(any) (err error) {
		newest, err = l.tx.newest()
		return err
	})
	if err != nil {
		return err
	}
	return l.head.begin(newest)
}

// write commits a group behind the event that reports a broken log, if one is
// due.
func (l *Log) write(group []*Row) error {
	rows := group
	if l.broken != nil {
		rows = append([]*Row{l.broken}, group...)
	}
	if len(rows) == 0 {
		return nil
	}
	if err := l.tx.write(rows); err != nil {
		return err
	}
	last := rows[len(rows)-1]
	l.known = head{seq: last.Seq, hash: last.Hash}
	if l.broken != nil {
		l.reported()
	}
	l.head.advance(l.known)
	l.committed(len(rows))
	return nil
}
