package audit

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// batchWriter writes transactions on one connection with prepared statements. It calls the driver directly: preparing
// statements and converting values would cost more than the rows themselves, and every request waits for such a
// commit.
type batchWriter struct {
	conn                          *sql.Conn
	begin, commit, rollback, last driver.Stmt
	hashOf, shrink                driver.Stmt
	setJournal, dropJournal       driver.Stmt
	one, two, many                driver.Stmt // insert one row, two, or manyRows
	args                          [manyRows * columnCount]driver.NamedValue
	states                        []journalState // to be recorded with the next rows
	head                          head           // a row that the log must have; seq 0: none
	headValid                     bool           // head was the newest row after our last commit
	span                          time.Duration  // the busy timeout that is set
}

// manyRows is how many rows one statement inserts at most.
const manyRows = 16

func newBatchWriter(db *sql.DB) (*batchWriter, error) {
	conn, err := db.Conn(context.Background())
	if err != nil {
		return nil, err
	}
	t := &batchWriter{conn: conn}
	for i := range t.args {
		t.args[i].Ordinal = i + 1
	}
	err = conn.Raw(func(c any) error {
		preparer, ok := c.(driver.ConnPrepareContext)
		if !ok {
			return errors.New("the driver cannot prepare statements")
		}
		for query, stmt := range map[string]*driver.Stmt{
			"BEGIN IMMEDIATE": &t.begin, "COMMIT": &t.commit, "ROLLBACK": &t.rollback,
			selectHead: &t.last, insertRows(1): &t.one, insertRows(2): &t.two, insertRows(manyRows): &t.many,
			selectHash: &t.hashOf, "PRAGMA shrink_memory": &t.shrink, setJournal: &t.setJournal, dropJournal: &t.dropJournal,
		} {
			var err error
			if *stmt, err = preparer.PrepareContext(context.Background(), query); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.close()
		return nil, err
	}
	return t, nil
}

// wait sets how long a transaction waits for locks.
func (t *batchWriter) wait(span time.Duration) error {
	if t.span == span {
		return nil
	}
	t.span = span
	_, err := t.conn.ExecContext(context.Background(), fmt.Sprintf("PRAGMA busy_timeout = %d", span.Milliseconds()))
	return err
}

func (t *batchWriter) close() {
	_ = t.conn.Raw(func(any) error {
		for _, s := range []driver.Stmt{
			t.begin, t.commit, t.rollback, t.last, t.one, t.two, t.many, t.hashOf, t.shrink, t.setJournal, t.dropJournal,
		} {
			if s != nil {
				_ = s.Close()
			}
		}
		return nil
	})
	_ = t.conn.Close()
}

// write chains rows to the newest one and commits all of them or none.
//
// The newest row is known as long as no other process writes. If one did, its row already has the seq of our first
// row: SQLite refuses the insert, and the newest row is read from the table. The row that was the newest before must
// still be in the log: otherwise the error is a *breach.
func (t *batchWriter) write(rows []*Row) error {
	return t.conn.Raw(func(any) error {
		if t.headValid {
			err := t.add(rows)
			if !isSeqConflict(err) {
				return err
			}
			t.headValid = false
		}
		return t.addToNewest(rows)
	})
}

// isSeqConflict reports whether err means that another row already has the seq.
func isSeqConflict(err error) bool {
	var sqliteErr *sqlite.Error
	return errors.As(err, &sqliteErr) && sqliteErr.Code() == sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY
}

// add commits rows behind the row known as the newest. One statement inserts up to two rows, and needs no explicit
// transaction.
func (t *batchWriter) add(rows []*Row) error {
	if len(rows) > 2 || len(t.states) > 0 {
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
	if err := run(t.begin, nil); err != nil {
		return err
	}
	err := f()
	if err == nil {
		err = t.record()
	}
	if err == nil {
		err = run(t.commit, nil)
	}
	if err != nil {
		t.headValid = false
		_ = run(t.rollback, nil)
	}
	return err
}

// insert chains rows to t.head and inserts them.
func (t *batchWriter) insert(rows []*Row) error {
	h := t.head
	for len(rows) > 0 {
		s, n := t.one, 1
		switch {
		case len(rows) >= manyRows:
			s, n = t.many, manyRows
		case len(rows) >= 2:
			s, n = t.two, 2
		}
		for i, r := range rows[:n] {
			fields, err := r.complete(h)
			if err != nil {
				return err
			}
			t.bind(i, r, fields)
			h = head{seq: r.Seq, ts: r.TS, hash: r.Hash}
		}
		if err := run(s, t.args[:n*columnCount]); err != nil {
			return err
		}
		rows = rows[n:]
	}
	t.head, t.headValid = h, true
	return nil
}

// record records the states of journals.
func (t *batchWriter) record() error {
	for _, j := range t.states {
		s, args := t.setJournal, []driver.NamedValue{
			{Ordinal: 1, Value: j.name}, {Ordinal: 2, Value: j.folded}, {Ordinal: 3, Value: j.state},
		}
		if j.state == journalRemoved {
			s, args = t.dropJournal, args[:1]
		}
		if err := run(s, args); err != nil {
			return err
		}
	}
	return nil
}

// bind makes r the i-th row of the next insert.
func (t *batchWriter) bind(i int, r *Row, fields string) {
	args := binding{args: t.args[i*columnCount:]}
	args.number(r.Seq)
	args.text(r.ID, r.stamp(), string(r.Event), r.SessionID, string(r.Source))
	args.textOrNull(string(r.Decision), r.Reason, r.ConnectorFQN, r.ConnectorVersion, r.Tool, r.Operation, r.Binding)
	args.text(r.Method, r.Scheme, r.Host)
	args.number(int64(r.Port))
	args.text(r.Path, r.HTTPVersion)
	args.number(int64(r.Status), r.RequestBytes, r.ResponseBytes, int64(r.Redactions), r.DurationUS)
	args.text(fields, r.PrevHash, r.Hash)
}

// binding sets arguments of a statement, one after the other. An argument that has
// the value already, from the row before, stays: most columns of a session's rows
// are the same, and a value that is made an interface allocates.
type binding struct {
	args []driver.NamedValue
	n    int
}

func (b *binding) text(values ...string) {
	for _, v := range values {
		if old, ok := b.args[b.n].Value.(string); !ok || old != v {
			b.args[b.n].Value = v
		}
		b.n++
	}
}

// textOrNull is text for columns that insertRows expects to be NULL where they are
// empty.
func (b *binding) textOrNull(values ...string) {
	for _, v := range values {
		if v != "" {
			b.text(v)
			continue
		}
		b.args[b.n].Value = nil
		b.n++
	}
}

func (b *binding) number(values ...int64) {
	for _, v := range values {
		if old, ok := b.args[b.n].Value.(int64); !ok || old != v {
			b.args[b.n].Value = v
		}
		b.n++
	}
}

// insertRows returns the statement that inserts n rows.
func insertRows(n int) string {
	// The columns that are often empty are bound as NULL: the driver allocates memory for a text, even an empty one.
	const values = "(?,?,?,?,?,?," + "IFNULL(?,''),IFNULL(?,''),IFNULL(?,''),IFNULL(?,''),IFNULL(?,''),IFNULL(?,'')," +
		"IFNULL(?,'')," + "?,?,?,?,?,?,?,?,?,?,?,?,?,?)"
	return "INSERT INTO events (" + columns + ") VALUES " + values + strings.Repeat(", "+values, n-1)
}

func run(s driver.Stmt, args []driver.NamedValue) error {
	_, err := s.(driver.StmtExecContext).ExecContext(context.Background(), args)
	return err
}
