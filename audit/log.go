package audit

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/ALRubinger/aileron/audit/internal/chain"
	"github.com/ALRubinger/aileron/audit/internal/journal"
	"github.com/ALRubinger/aileron/audit/internal/table"
	"github.com/ALRubinger/aileron/internal/panics"
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
	// Wrote is set if the caller has added rows to the database by other means. Otherwise rows that no line of audit.head
	// names are those of another program.
	Wrote bool
}

// Log appends to and reads one audit.db. Several processes may have the same file open. All methods are safe for
// concurrent use.
type Log struct {
	path     string
	opts     Options
	db       *table.Database
	head     *chain.HeadFile
	unfolded int // see Unfolded

	// Owned by the leader.
	tx       *table.Writer // nil: the next commit creates it
	known    chain.Head    // a row that the log must have; seq 0: none
	unsigned bool          // no head is signed: rows were added that no process of this program can have added
	attested time.Time     // when the log was last seen to have it
	broken   *Row          // the event to commit before any other row
	lockWait chain.LockWait
	turns    table.Turns
	signs    *chain.HeadSigner // see signer
	journal  *journal.Journal  // nil: the log is not a session's, and goroutines commit the rows that they append

	writer
	checkpoints *table.Checkpointer
	health      *table.Health  // nil: the log is not a session's
	index       *table.Indexer // nil: the log is not a session's
}

// Open opens or creates the log for appending.
func Open(path string, opts Options) (*Log, error) {
	if opts.Durability != "" && opts.Durability != "normal" && opts.Durability != "full" {
		return nil, fmt.Errorf("open the audit log: durability is %q; it must be normal or full", opts.Durability)
	}
	l := &Log{path: path, opts: opts, head: chain.NewHeadFile(path)}
	l.writer.init(l)
	var err error
	if l.db, err = table.Open(path, opts.Durability, l.lockWait.Span()); err != nil {
		return nil, err
	}
	l.checkpoints = table.StartCheckpoints()
	if err := l.examine(context.Background()); err != nil {
		return nil, fmt.Errorf("open the audit log: %w", errors.Join(err, l.Close()))
	}
	if l.broken != nil {
		l.writer.flush(context.Background()) // if it fails, the next commit includes the event
	}
	l.Adopt(context.Background())
	if journal.IsFileID(opts.Session) {
		if err := l.startJournal(); err != nil {
			return nil, fmt.Errorf("open the audit log: %w", errors.Join(err, l.Close()))
		}
		l.health = table.StartHealth(path, opts.OnDamage, l.reportBreak)
		l.index = l.db.StartIndex()
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
	db, err := table.OpenForReading(path)
	if err != nil {
		return nil, fmt.Errorf("open the audit log: %w", err)
	}
	l := &Log{path: path, db: db, head: chain.NewHeadFile(path)}
	for _, u := range left {
		l.unfolded += len(u.Rows)
	}
	return l, nil
}

// Unfolded returns how many rows were in journals, and not in the database, when the log was opened for reading: they
// could not be added to it, for example because the file system is read-only.
func (l *Log) Unfolded() int { return l.unfolded }

// Queued returns how many bytes of rows are durable in the session's journal, and not in the database yet.
func (l *Log) Queued() int64 {
	if l.journal == nil {
		return 0
	}
	return l.journal.Unfolded()
}

// Close commits queued rows and closes the log. The error wraps a [LostError] if rows could not be committed.
func (l *Log) Close() error {
	l.health.Close()
	l.index.Close()
	l.lockWait.Last.Store(true)
	lost := l.writer.close()
	if l.journal != nil {
		l.endJournal(lost == nil)
	}
	if l.checkpoints != nil {
		l.checkpoints.Stop()
	}
	if l.tx != nil {
		l.tx.Close()
	}
	l.signs.Close()
	l.head.End(l.opts.Durability == "full")
	return errors.Join(lost, l.db.Close())
}

// commit writes a group, and what is committed with it, in one transaction: all or nothing. It first
// reports a log that is not the one that this process wrote, and reopens a database that was removed or replaced.
func (l *Log) commit(group []*Row, with table.Extra) (err error) {
	defer func() {
		l.lockWait.Observe(IsLocked(err))
		if err != nil && l.tx != nil && !table.IsOfRow(err) {
			l.tx.Close() // the next commit begins with a new one
			l.tx = nil
		}
	}()
	defer l.takeTurn(l.turnSpan())()
	if err := l.ready(); err != nil {
		return err
	}
	err = l.write(group, with)
	var b *chain.Breach
	if errors.As(err, &b) && l.excuses(b) {
		err, b = l.write(group, with), nil
	}
	if errors.As(err, &b) {
		found := []chain.Breach{*b}
		if err = l.recordBreaches(append(found, l.others(found)...)); err == nil {
			err = l.beginHead()
		}
		if err == nil {
			err = l.write(group, with)
		}
	}
	return err
}

// ready creates the Writer, compares the log with what is known of it, and begins this writer's line of
// audit.head.
func (l *Log) ready() error {
	if err := l.health.Changed(); err != nil {
		return err
	}
	if !l.db.InPlace(time.Since(l.attested) <= groupDelay) {
		if l.tx != nil {
			l.tx.Close()
			l.tx = nil
		}
		if err := l.db.Reopen(l.lockWait.Span()); err != nil {
			return err
		}
	}
	if l.tx == nil {
		tx, err := table.NewWriter(l.path, l.opts.Durability, l.lockWait.Span())
		if table.NoTable(err) { // another database was copied over the file
			if err := table.Create(l.db.SQL(), l.lockWait.Span()); err != nil {
				return err
			}
			tx, err = table.NewWriter(l.path, l.opts.Durability, l.lockWait.Span())
		}
		if err != nil {
			return err
		}
		tx.Head = l.known
		if !l.unsigned {
			tx.Signer = l.signer()
		}
		l.tx = tx
		l.attested = time.Time{}
	}
	if err := l.tx.Wait(l.lockWait.Span()); err != nil {
		return err
	}
	if err := l.attest(); err != nil {
		return err
	}
	return l.beginHead()
}

// signer returns what signs the heads of this Log. A session's has what it needs from the start: an agent must not be
// able to prevent a signed head, for example with so many connections that no file can be opened.
func (l *Log) signer() *chain.HeadSigner {
	if l.signs == nil {
		l.signs = &chain.HeadSigner{Path: l.path, Source: l.source()}
		if l.journal != nil {
			l.signs.Prepare()
		}
	}
	return l.signs
}

// beginHead begins this writer's line of audit.head.
func (l *Log) beginHead() error {
	if l.head.Line.Number > 0 {
		return nil
	}
	newest, err := l.tx.Newest()
	if err != nil {
		return err
	}
	return l.head.Begin(newest)
}

// write commits a group, behind the event that reports a broken log if there is one.
func (l *Log) write(group []*Row, with table.Extra) error {
	rows := group
	if l.broken != nil {
		if with.Removal != nil {
			return ErrPlanOutdated // the rows that were verified may not be those that the log has now
		}
		rows = append([]*Row{l.broken}, group...)
	}
	if l.journal != nil && !l.journal.Registered && len(with.States) == 0 {
		with.States = statesOf(l.journal, l.journal.Folded)
	}
	if len(rows) == 0 && with.IsEmpty() {
		return nil
	}
	l.tx.Extra = with
	if err := l.tx.Write(rows); err != nil {
		return err
	}
	if l.journal != nil {
		l.journal.Registered, l.journal.Former = true, ""
	}
	if len(rows) == 0 {
		return nil
	}
	l.known = chain.Head{Seq: l.tx.Head.Seq, Hash: l.tx.Head.Hash}
	if l.broken != nil {
		l.reported()
	}
	l.head.Advance(l.known)
	l.checkpoints.Committed(len(rows), l.tx, l.db)
	l.index.Committed(l.known.Seq)
	for at := 0; at < len(rows) || len(l.tx.Signed) > 0; { // in the order of their numbers
		if signed := l.tx.Signed; len(signed) > 0 && (at == len(rows) || signed[0].Seq < rows[at].Seq) {
			l.passOn(signed[0])
			l.tx.Signer.Keep(signed[0])
			l.tx.Signed = signed[1:]
			continue
		}
		l.passOn(rows[at])
		at++
	}
	return nil
}

// passOn calls OnCommitted.
func (l *Log) passOn(r *Row) {
	if l.opts.OnCommitted == nil {
		return
	}
	if fields, err := r.StoredFields(); err == nil { // otherwise it could not have been committed
		l.opts.OnCommitted(r.WithoutFields(), fields)
	}
}

// source returns the source of the rows of the log itself.
func (l *Log) source() Source {
	if l.opts.Session != "" {
		return SourceLauncher
	}
	return SourceCLI
}

// Damage returns a *DamageError while a row of the log cannot be read: no intent is committed then. It is nil for a
// log that is not a session's.
func (l *Log) Damage() error { return l.health.Damage() }

// refuses returns why a row must not be committed: it is an intent, and the log is damaged or of another version: then
// nothing is written to it. Outcomes are committed as long as possible.
func (l *Log) refuses(e Event) error {
	if l == nil || e != EventProxyStarted {
		return nil
	}
	err := l.health.Changed()
	if err == nil {
		err = l.Damage()
	}
	return err
}

// Foreign returns a *SchemaError for a log of another version: it must not be written or verified, but may be
// readable.
func (l *Log) Foreign() error { return table.CheckSchema(l.path) }

// commitOrFail calls commit and returns a panic as an error, so that the leader passes the lead on in any case.
func (l *Log) commitOrFail(group []*Row, with table.Extra) (err error) {
	defer func() {
		if recover() == nil {
			return
		}
		err = fmt.Errorf("commit: it panicked at %s", strings.Join(panics.Origin(), " < "))
		if l.tx != nil {
			l.tx.Close()
			l.tx = nil
		}
	}()
	return l.commit(group, with)
}
