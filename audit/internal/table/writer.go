package table

import (
	"fmt"
	"time"

	sqlite3 "modernc.org/sqlite/lib"

	"github.com/ALRubinger/aileron/audit/internal/chain"
)

// Writer writes transactions on a connection of its own with prepared statements.
type Writer struct {
	Conn                    *Connection
	begin, commit, rollback *Statement
	last, hashOf, insertOne *Statement
	setJournal, dropJournal *Statement
	Extra                   Extra             // what is committed with the next rows
	Head                    chain.Head        // a row that the log must have; seq 0: none
	headValid               bool              // head was the newest row after our last commit
	span                    time.Duration     // the busy timeout that is set
	Signer                  *chain.HeadSigner // nil: heads are not signed
	Signed                  []*chain.Row      // with the heads of the last rows
}

// NewWriter opens a connection to the database, which exists.
func NewWriter(path, durability string, span time.Duration) (*Writer, error) {
	conn, err := OpenConnection(path)
	if err != nil {
		return nil, err
	}
	t := &Writer{Conn: conn}
	if err := t.prepare(durability, span); err != nil {
		t.Close()
		return nil, err
	}
	return t, nil
}

func (t *Writer) prepare(durability string, span time.Duration) error {
	if err := t.Wait(span); err != nil {
		return err
	}
	for _, query := range []string{
		"PRAGMA journal_mode = WAL", "PRAGMA wal_autocheckpoint = 0", "PRAGMA synchronous = " + synchronous(durability),
	} {
		if err := t.Conn.Exec(query); err != nil {
			return err
		}
	}
	for _, s := range []struct {
		query string
		to    **Statement
	}{
		{"BEGIN IMMEDIATE", &t.begin}, {"COMMIT", &t.commit}, {"ROLLBACK", &t.rollback}, {SelectHead, &t.last},
		{SelectHash, &t.hashOf}, {InsertRow, &t.insertOne}, {SetJournal, &t.setJournal}, {dropJournal, &t.dropJournal},
	} {
		var err error
		if *s.to, err = t.Conn.Prepare(s.query); err != nil {
			return err
		}
	}
	return nil
}

// Wait sets how long a transaction waits for locks.
func (t *Writer) Wait(span time.Duration) error {
	if t.span == span {
		return nil
	}
	t.span = span
	return t.Conn.wait(span)
}

func (t *Writer) Close() { t.Conn.Close() }

// Write chains rows to the newest one and commits all of them or none.
//
// The newest row is known as long as no other process writes. If one did, its row already has the seq of our first
// row: SQLite refuses the insert, and the newest row is read from the table. The row that was the newest before must
// still be in the log: otherwise the error is a *breach.
func (t *Writer) Write(rows []*chain.Row) error {
	if t.headValid {
		err := t.add(rows)
		if !IsSeqConflict(err) {
			return err
		}
		t.headValid = false
	}
	return t.addToNewest(rows)
}

// IsSeqConflict reports whether err means that another row already has the seq.
func IsSeqConflict(err error) bool {
	code, ok := CodeOf(err)
	return ok && code == sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY
}

// add commits rows behind the row known as the newest. One row needs no explicit transaction.
func (t *Writer) add(rows []*chain.Row) error {
	if len(rows) != 1 || !t.Extra.IsEmpty() || t.Signer.IsDue(t.Head.Seq+1, rows[0].Event) {
		return t.within(func() error { return t.insert(rows) })
	}
	return t.insert(rows)
}

// addToNewest reads the newest row, and commits rows behind it.
func (t *Writer) addToNewest(rows []*chain.Row) error {
	return t.within(func() (err error) {
		if err := t.holds(); err != nil {
			return err
		}
		if t.Head, err = t.Newest(); err != nil {
			return err
		}
		return t.insert(rows)
	})
}

// within runs f in one transaction.
func (t *Writer) within(f func() error) error {
	if err := t.begin.Run(); err != nil {
		return err
	}
	err := f()
	if err == nil {
		err = t.record()
	}
	if err == nil {
		err = t.commit.Run()
	}
	if err != nil {
		t.headValid = false
		_ = t.rollback.Run()
	}
	return err
}

// insert chains rows to t.head and inserts them, and the rows with their signed heads where they are due.
func (t *Writer) insert(rows []*chain.Row) (err error) {
	h := t.Head
	t.Signed = nil
	if t.Extra.Removal != nil {
		if err := t.remove(t.Extra.Removal); err != nil {
			return err
		}
	}
	for _, r := range rows {
		if h, err = t.insertRow(h, r); err != nil {
			return err
		}
		if !t.Signer.IsDue(h.Seq, r.Event) {
			continue
		}
		if h, err = t.signHead(h); err != nil {
			return err
		}
	}
	t.Head, t.headValid = h, true
	return nil
}

// insertRow chains r to h and inserts it. It returns the new head.
func (t *Writer) insertRow(h chain.Head, r *chain.Row) (chain.Head, error) {
	fields, err := r.Complete(h)
	if err != nil {
		return h, err
	}
	if err := t.bind(r, fields); err != nil {
		return h, err
	}
	if err := t.insertOne.Run(); err != nil {
		return h, err
	}
	return chain.Head{Seq: r.Seq, Ts: r.TS, Hash: r.Hash}, nil
}

// record records the states of journals.
func (t *Writer) record() error {
	for _, j := range t.Extra.States {
		s, b := t.setJournal, binding{to: t.setJournal}
		if j.State == JournalRemoved {
			s, b = t.dropJournal, binding{to: t.dropJournal}
		}
		b.text(j.Name)
		if j.State != JournalRemoved {
			b.number(j.Folded)
			b.text(j.State)
		}
		if b.err != nil {
			return b.err
		}
		if err := s.Run(); err != nil {
			return err
		}
	}
	return nil
}

// bind makes r the row of the next insert.
func (t *Writer) bind(r *chain.Row, fields string) error {
	b := binding{to: t.insertOne}
	b.number(r.Seq)
	b.text(r.ID)
	b.text(r.Stamp())
	b.text(string(r.Event))
	b.text(r.SessionID)
	b.text(string(r.Source))
	b.text(string(r.Decision))
	b.text(r.Reason)
	b.text(r.ConnectorFQN)
	b.text(r.ConnectorVersion)
	b.text(r.Tool)
	b.text(r.Operation)
	b.text(r.Binding)
	b.text(r.Method)
	b.text(r.Scheme)
	b.text(r.Host)
	b.number(int64(r.Port))
	b.text(r.Path)
	b.text(r.HTTPVersion)
	b.number(int64(r.Status))
	b.number(r.RequestBytes)
	b.number(r.ResponseBytes)
	b.number(int64(r.Redactions))
	b.number(r.DurationUS)
	b.text(fields)
	b.text(r.PrevHash)
	b.text(r.Hash)
	return b.err
}

// binding binds the parameters of a statement, one after the other.
type binding struct {
	to  *Statement
	n   int
	err error
}

func (b *binding) text(v string) {
	if err := b.to.BindText(b.n, v); err != nil {
		b.err = err
	}
	b.n++
}

func (b *binding) number(v int64) {
	if err := b.to.BindNumber(b.n, v); err != nil {
		b.err = err
	}
	b.n++
}

// signHead adds the row with the signed head h, and returns the new head. A database that does not accept the row,
// because of a constraint of someone else's, accepts rows all the same.
func (t *Writer) signHead(h chain.Head) (chain.Head, error) {
	r, err := t.Signer.Row(h)
	if err != nil {
		return h, nil //nolint:nilerr // see HeadSigner
	}
	next, err := t.insertRow(h, r)
	if code, ok := CodeOf(err); ok && code&0xff == sqlite3.SQLITE_CONSTRAINT {
		return h, nil
	}
	if err == nil {
		t.Signed = append(t.Signed, r)
	}
	return next, err
}

// Extra is what is committed in the transaction of rows.
type Extra struct {
	States  []JournalState // of journals whose rows these are
	Removal *Removal       // nil: no rows are removed
}

func (e *Extra) IsEmpty() bool { return len(e.States) == 0 && e.Removal == nil }

// Add adds what is committed with other rows. Only one of them removes rows.
func (e *Extra) Add(more Extra) {
	e.States = append(e.States, more.States...)
	if more.Removal != nil {
		e.Removal = more.Removal
	}
}

// Attest returns a *breach if the files of the database do not have the row that this process committed last.
// SQLite's page cache is dropped first, so that the files themselves are read.
func (t *Writer) Attest() error {
	if err := t.Conn.shrink(); err != nil {
		return err
	}
	return t.holds()
}

// Forget drops what is known of the log.
func (t *Writer) Forget() { t.Head, t.headValid = chain.Head{}, false }

// holds returns a *breach if the log does not have the row of head.
func (t *Writer) holds() error {
	if t.Head.Seq == 0 {
		return nil
	}
	found, exists, err := t.hash(t.Head.Seq)
	return compare(t.Head, found, exists, err)
}

// hash returns the hash of a row, and whether there is such a row.
func (t *Writer) hash(seq int64) (hash string, exists bool, err error) {
	if err := t.hashOf.BindNumber(0, seq); err != nil {
		return "", false, err
	}
	defer t.hashOf.Reset()
	exists, err = t.hashOf.Step()
	if !exists {
		return "", false, err
	}
	hash, ok := t.hashOf.String(0)
	if !ok {
		return "", true, ErrDamaged
	}
	return hash, true, nil
}

// Newest returns the newest row of the log, seq 0 if there is none.
func (t *Writer) Newest() (chain.Head, error) {
	defer t.last.Reset()
	exists, err := t.last.Step()
	if !exists {
		return chain.Head{Hash: chain.ZeroHash}, err
	}
	seq, ok := t.last.Number(0)
	ts, isText := t.last.String(1)
	hash, isHash := t.last.String(2)
	if !ok || !isText || !isHash {
		return chain.Head{}, fmt.Errorf("read the newest row: %w", ErrDamaged)
	}
	when, _ := time.Parse(chain.TimeFormat, ts) // it fails only for a row that was changed, which Verify finds
	return chain.Head{Seq: seq, Ts: when, Hash: hash}, nil
}
