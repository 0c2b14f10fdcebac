package audit

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"
)

// ErrUnavailable is returned when the log cannot be written. The caller must not do what it wanted to record.
var ErrUnavailable = errors.New("the audit log cannot be written")

// Options configure a log. The zero value is valid.
type Options struct {
	// Durability is "normal" (the default: a committed row survives the death of the process) or "full" (it survives a
	// power cut too).
	Durability string
	// Session is the id of the session that writes, for the events of the log itself. It is empty for a command outside
	// any session.
	Session string
	// OnBroken, if not nil, is called after an EventBroken is committed. It must not use the log.
	OnBroken func(Row)
	// OnOutage, if not nil, is called when the log cannot be written, and when it can be again. It must not use the log.
	OnOutage func(Outage)
	// OnLost, if not nil, is called with the number of rows that can never be committed although others can. It must not
	// use the log.
	OnLost func(rows int)
	// OnDamage, if not nil, is called when a row of the database cannot be read, and with nil when all can be again. It
	// must not use the log.
	OnDamage func(*DamageError)
	// OnTurn, if not nil, is called when rows are committed without waiting for the turn of this process, because
	// another one does not end its turn ([ErrNoTurn]) or the file of the queue cannot be opened: once until a turn comes.
	// It must not use the log.
	OnTurn func(error)
	// OnCommitted, if not nil, is called with each row that was committed to the database, in their order: its columns,
	// and its fields as JSON, which Row.Fields does not have. It must not block, and not use the log.
	OnCommitted func(r Row, fields string)
}

// Log appends to and reads one audit.db. Several processes may have the same file open. All methods are safe for
// concurrent use.
type Log struct {
	path     string
	opts     Options
	db       *sql.DB
	reading  sync.RWMutex // guards db for goroutines other than the leader
	head     *headFile
	unfolded int // see Unfolded

	// Owned by the leader.
	file     os.FileInfo                // the file that db has open
	sidecars [len(sidecars)]os.FileInfo // the files beside it
	tx       *batchWriter               // nil: the next commit creates it
	known    head                       // a row that the log must have; seq 0: none
	attested time.Time                  // when the log was last seen to have it
	replaced bool                       // file was replaced by another one
	broken   *Row                       // the event to commit before any other row
	lockWait lockWait
	turns    turns
	journal  *journal // nil: the log is not a session's, and its rows are committed by the goroutines that append them

	writer
	checkpoints *checkpointer
	health      *health  // nil: the log is not a session's
	index       *indexer // nil: the log is not a session's
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
		l.writer.flush(context.Background()) // if it fails, the next commit includes the event
	}
	l.Adopt(context.Background())
	if isFileID(opts.Session) {
		if err := l.startJournal(); err != nil {
			return nil, fmt.Errorf("open the audit log: %w", errors.Join(err, l.Close()))
		}
		l.startHealth()
		l.startIndex()
	}
	return l, nil
}

// OpenReader opens the log for reading. It never creates it: if there is no log, the error wraps fs.ErrNotExist. Rows
// that sessions have in their journals are added to it before, if that is possible.
func OpenReader(path string) (*Log, error) {
	if _, err := os.Stat(path); err != nil {
		return nil, fmt.Errorf("open the audit log: %w", err)
	}
	left := settle(path)
	readOnly, err := immutable(path)
	if err != nil {
		return nil, fmt.Errorf("open the audit log: %w", err)
	}
	db, err := sql.Open("sqlite", dsn(path)+"?mode=ro&_pragma=busy_timeout(2000)"+readOnly)
	if err != nil {
		return nil, fmt.Errorf("open the audit log: %w", err)
	}
	l := &Log{path: path, db: db, head: newHeadFile(path)}
	for _, u := range left {
		l.unfolded += len(u.Rows)
	}
	return l, nil
}

// Unfolded returns how many rows were in journals, and not in the database, when the log was opened for reading: they
// could not be added to it, for example because the file system is read-only.
func (l *Log) Unfolded() int { return l.unfolded }

// Close commits queued rows and closes the log. The error wraps a [LostError] if rows could not be committed.
func (l *Log) Close() error {
	l.health.close()
	l.index.close()
	l.lockWait.last.Store(true)
	lost := l.writer.close()
	if l.journal != nil {
		l.endJournal(lost == nil)
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

// commit writes a group, and the states of journals whose rows it has, in one transaction: all or nothing. It first
// reports a log that is not the one that this process wrote, and reopens a database that was removed or replaced.
func (l *Log) commit(group []*Row, states []journalState) (err error) {
	defer func() {
		l.lockWait.observe(err)
		if err != nil && l.tx != nil && !isOfRow(err) {
			l.tx.close() // the next commit begins with a new one
			l.tx = nil
		}
	}()
	defer l.takeTurn(l.turnSpan())()
	if err := l.ready(); err != nil {
		return err
	}
	err = l.write(group, states)
	var b *breach
	if errors.As(err, &b) && l.excuses(b) {
		err, b = l.write(group, states), nil
	}
	if errors.As(err, &b) {
		found := []breach{*b}
		if err = l.recordBreaches(append(found, l.others(found)...)); err == nil {
			err = l.write(group, states)
		}
	}
	return err
}

// ready creates the batchWriter, compares the log with what is known of it, and begins this writer's line of
// audit.head.
func (l *Log) ready() error {
	if err := l.changed(); err != nil {
		return err
	}
	if err := l.sameFile(); err != nil {
		return err
	}
	if l.tx == nil {
		tx, err := newBatchWriter(l.path, l.opts.Durability, l.lockWait.span())
		if noTable(err) { // another database was copied over the file
			if err := create(l.db, l.lockWait.span()); err != nil {
				return err
			}
			tx, err = newBatchWriter(l.path, l.opts.Durability, l.lockWait.span())
		}
		if err != nil {
			return err
		}
		tx.head, tx.signer = l.known, &headSigner{path: l.path, source: l.source()}
		l.tx = tx
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
	newest, err := l.tx.newest()
	if err != nil {
		return err
	}
	return l.head.begin(newest)
}

// write commits a group, behind the event that reports a broken log if there is one.
func (l *Log) write(group []*Row, states []journalState) error {
	rows := group
	if l.broken != nil {
		if slices.ContainsFunc(group, func(r *Row) bool { return r.removal != nil }) {
			return ErrPlanOutdated // the rows that were verified may not be those that the log has now
		}
		rows = append([]*Row{l.broken}, group...)
	}
	if l.journal != nil && !l.journal.registered && len(states) == 0 {
		states = l.journal.states(l.journal.folded)
	}
	if len(rows) == 0 && len(states) == 0 {
		return nil
	}
	l.tx.states = states
	if err := l.tx.write(rows); err != nil {
		return err
	}
	if l.journal != nil {
		l.journal.registered, l.journal.former = true, ""
	}
	if len(rows) == 0 {
		return nil
	}
	l.known = head{seq: l.tx.head.seq, hash: l.tx.head.hash}
	if l.broken != nil {
		l.reported()
	}
	l.head.advance(l.known)
	l.committed(len(rows))
	l.index.add(rows)
	l.passOn(rows...)
	if signed := l.tx.signed; signed != nil {
		l.index.add([]*Row{signed})
		l.passOn(signed)
		l.tx.signer.keep(signed)
	}
	return nil
}

// passOn calls OnCommitted.
func (l *Log) passOn(rows ...*Row) {
	if l.opts.OnCommitted == nil {
		return
	}
	for _, r := range rows {
		fields, err := r.storedFields()
		if err != nil {
			continue // it could not have been committed
		}
		passed := *r
		passed.Fields, passed.raw = nil, nil
		l.opts.OnCommitted(passed, fields)
	}
}

// source returns the source of the rows of the log itself.
func (l *Log) source() Source {
	if l.opts.Session != "" {
		return SourceLauncher
	}
	return SourceCLI
}
