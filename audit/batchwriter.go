package audit

import (
	"time"

	sqlite3 "modernc.org/sqlite/lib"
)

// batchWriter writes transactions on a connection of its own with prepared statements.
type batchWriter struct {
	conn                    *connection
	begin, commit, rollback *statement
	last, hashOf, insertOne *statement
	setJournal, dropJournal *statement
	states                  []journalState // to be recorded with the next rows
	head                    head           // a row that the log must have; seq 0: none
	headValid               bool           // head was the newest row after our last commit
	span                    time.Duration  // the busy timeout that is set
	signer                  *headSigner    // nil: heads are not signed
	signed                  *Row           // with the head of the last rows; nil: it was not signed
}

// newBatchWriter opens a connection to the database, which exists.
func newBatchWriter(path, durability string, span time.Duration) (*batchWriter, error) {
	conn, err := openConnection(path)
	if err != nil {
		return nil, err
	}
	t := &batchWriter{conn: conn}
	if err := t.prepare(durability, span); err != nil {
		t.close()
		return nil, err
	}
	return t, nil
}

func (t *batchWriter) prepare(durability string, span time.Duration) error {
	if err := t.wait(span); err != nil {
		return err
	}
	for _, query := range []string{
		"PRAGMA journal_mode = WAL", "PRAGMA wal_autocheckpoint = 0", "PRAGMA synchronous = " + synchronous(durability),
	} {
		if err := t.conn.exec(query); err != nil {
			return err
		}
	}
	for _, s := range []struct {
		query string
		to    **statement
	}{
		{"BEGIN IMMEDIATE", &t.begin}, {"COMMIT", &t.commit}, {"ROLLBACK", &t.rollback}, {selectHead, &t.last},
		{selectHash, &t.hashOf}, {insertRow, &t.insertOne}, {setJournal, &t.setJournal}, {dropJournal, &t.dropJournal},
	} {
		var err error
		if *s.to, err = t.conn.prepare(s.query); err != nil {
			return err
		}
	}
	return nil
}

// wait sets how long a transaction waits for locks.
func (t *batchWriter) wait(span time.Duration) error {
	if t.span == span {
		return nil
	}
	t.span = span
	return t.conn.wait(span)
}

func (t *batchWriter) close() { t.conn.close() }

// write chains rows to the newest one and commits all of them or none.
//
// The newest row is known as long as no other process writes. If one did, its row already has the seq of our first
// row: SQLite refuses the insert, and the newest row is read from the table. The row that was the newest before must
// still be in the log: otherwise the error is a *breach.
func (t *batchWriter) write(rows []*Row) error {
	if t.headValid {
		err := t.add(rows)
		if !isSeqConflict(err) {
			return err
		}
		t.headValid = false
	}
	return t.addToNewest(rows)
}

// isSeqConflict reports whether err means that another row already has the seq.
func isSeqConflict(err error) bool {
	code, ok := codeOf(err)
	return ok && code == sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY
}

// add commits rows behind the row known as the newest. One row needs no explicit transaction.
func (t *batchWriter) add(rows []*Row) error {
	if len(rows) != 1 || len(t.states) > 0 || rows[0].removal != nil || t.signer.isDue(t.head.seq, rows) {
		return t.within(func() error { return t.insert(rows) })
	}
	return t.insert(rows)
}

// addToNewest reads the newest row, and commits rows behind it.
func (t *batchWriter) addToNewest(rows []*Row) error {
	return t.within(func() (err error) {
		if err := t.holds(); err != nil {
			return err
		}
		if t.head, err = t.newest(); err != nil {
			return err
		}
		return t.insert(rows)
	})
}

// within runs f in one transaction.
func (t *batchWriter) within(f func() error) error {
	if err := t.begin.run(); err != nil {
		return err
	}
	err := f()
	if err == nil {
		err = t.record()
	}
	if err == nil {
		err = t.commit.run()
	}
	if err != nil {
		t.headValid = false
		_ = t.rollback.run()
	}
	return err
}

// insert chains rows to t.head and inserts them, and behind them the row with their signed head, if it is due.
func (t *batchWriter) insert(rows []*Row) (err error) {
	h, newest := t.head, t.head.seq
	for _, r := range rows {
		if r.removal != nil {
			if err := t.remove(r.removal); err != nil {
				return err
			}
		}
		if h, err = t.insertRow(h, r); err != nil {
			return err
		}
	}
	if h, err = t.signHead(h, newest, rows); err != nil {
		return err
	}
	t.head, t.headValid = h, true
	return nil
}

// insertRow chains r to h and inserts it. It returns the new head.
func (t *batchWriter) insertRow(h head, r *Row) (head, error) {
	fields, err := r.complete(h)
	if err != nil {
		return h, err
	}
	if err := t.bind(r, fields); err != nil {
		return h, err
	}
	if err := t.insertOne.run(); err != nil {
		return h, err
	}
	return head{seq: r.Seq, ts: r.TS, hash: r.Hash}, nil
}

// record records the states of journals.
func (t *batchWriter) record() error {
	for _, j := range t.states {
		s, b := t.setJournal, binding{to: t.setJournal}
		if j.state == journalRemoved {
			s, b = t.dropJournal, binding{to: t.dropJournal}
		}
		b.text(j.name)
		if j.state != journalRemoved {
			b.number(j.folded)
			b.text(j.state)
		}
		if b.err != nil {
			return b.err
		}
		if err := s.run(); err != nil {
			return err
		}
	}
	return nil
}

// bind makes r the row of the next insert.
func (t *batchWriter) bind(r *Row, fields string) error {
	b := binding{to: t.insertOne}
	b.number(r.Seq)
	b.text(r.ID)
	b.text(r.stamp())
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
	to  *statement
	n   int
	err error
}

func (b *binding) text(v string) {
	if err := b.to.bindText(b.n, v); err != nil {
		b.err = err
	}
	b.n++
}

func (b *binding) number(v int64) {
	if err := b.to.bindNumber(b.n, v); err != nil {
		b.err = err
	}
	b.n++
}
