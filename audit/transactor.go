package audit

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// transactor writes transactions on one connection with statements that are
// prepared once. It speaks to the driver: preparing and converting cost more
// than the rows do, and every request waits for one of them.
type transactor struct {
	conn                          *sql.Conn
	begin, commit, rollback, last driver.Stmt
	hashOf, shrink                driver.Stmt
	one, two                      driver.Stmt // insert so many rows
	args                          [2 * columnCount]driver.NamedValue
	head                          head          // a row that the log has to have; seq 0: none
	knows                         bool          // head was the newest row after our last commit
	span                          time.Duration // how long it waits for locks
}

// head is the newest row of the log.
type head struct {
	seq  int64
	ts   time.Time
	hash string
}

func newTransactor(db *sql.DB) (*transactor, error) {
	conn, err := db.Conn(context.Background())
	if err != nil {
		return nil, err
	}
	t := &transactor{conn: conn}
	for i := range t.args {
		t.args[i].Ordinal = i + 1
	}
	err = conn.Raw(func(c any) error {
		preparer, ok := c.(driver.ConnPrepareContext)
		if !ok {
			return errors.New("the driver prepares no statements")
		}
		for query, stmt := range map[string]*driver.Stmt{
			"BEGIN IMMEDIATE": &t.begin, "COMMIT": &t.commit, "ROLLBACK": &t.rollback, selectHead: &t.last, insertRow: &t.one,
			insertRow + ", " + placeholders: &t.two, selectHash: &t.hashOf, "PRAGMA shrink_memory": &t.shrink,
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

// wait makes span the time that a transaction waits for locks.
func (t *transactor) wait(span time.Duration) error {
	if t.span == span {
		return nil
	}
	t.span = span
	_, err := t.conn.ExecContext(context.Background(), fmt.Sprintf("PRAGMA busy_timeout = %d", span.Milliseconds()))
	return err
}

func (t *transactor) close() {
	_ = t.conn.Raw(func(any) error {
		for _, s := range []driver.Stmt{t.begin, t.commit, t.rollback, t.last, t.one, t.two, t.hashOf, t.shrink} {
			if s != nil {
				_ = s.Close()
			}
		}
		return nil
	})
	_ = t.conn.Close()
}

// write chains rows to the newest one and commits them, all or none.
//
// Which one is the newest is known as long as nobody else writes. If somebody
// did, then its row has the seq that the first of ours claims, SQLite refuses
// ours, and all is done again from what the table says. The row that was the
// newest has to be there then: if it is not, the error is a *breach.
func (t *transactor) write(rows []*Row) error {
	return t.conn.Raw(func(any) error {
		if t.knows {
			err := t.add(rows)
			if !taken(err) {
				return err
			}
			t.knows = false
		}
		return t.addToNewest(rows)
	})
}

// taken reports that another row has the seq already.
func taken(err error) bool {
	var fault *sqlite.Error
	return errors.As(err, &fault) && fault.Code() == sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY
}

// add commits rows behind the row that is known as the newest. One or two need
// no transaction around their one statement.
func (t *transactor) add(rows []*Row) error {
	if len(rows) > 2 {
		return t.within(func() error { return t.insert(rows) })
	}
	return t.insert(rows)
}

func (t *transactor) addToNewest(rows []*Row) error {
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
func (t *transactor) within(f func() error) error {
	if err := run(t.begin, nil); err != nil {
		return err
	}
	err := f()
	if err == nil {
		err = run(t.commit, nil)
	}
	if err != nil {
		t.knows = false
		_ = run(t.rollback, nil)
	}
	return err
}

// insert chains rows to t.head and inserts them.
func (t *transactor) insert(rows []*Row) error {
	h := t.head
	for len(rows) > 0 {
		n := min(len(rows), 2)
		for i, r := range rows[:n] {
			fields, err := r.complete(h)
			if err != nil {
				return err
			}
			t.bind(i, r, fields)
			h = head{seq: r.Seq, ts: r.TS, hash: r.Hash}
		}
		s := t.one
		if n == 2 {
			s = t.two
		}
		if err := run(s, t.args[:n*columnCount]); err != nil {
			return err
		}
		rows = rows[n:]
	}
	t.head, t.knows = h, true
	return nil
}

// attest returns a *breach when the files of the database do not hold the row
// that this process knows. Pages that SQLite has in memory are not asked.
func (t *transactor) attest() error {
	return t.conn.Raw(func(any) error {
		if err := run(t.shrink, nil); err != nil {
			return err
		}
		return t.holds()
	})
}

// forget drops what is known of the log.
func (t *transactor) forget() { t.head, t.knows = head{}, false }

// holds returns a *breach when the log does not have the row of head.
func (t *transactor) holds() error {
	if t.head.seq == 0 {
		return nil
	}
	found, exists, err := t.hash(t.head.seq)
	return compare(t.head, found, exists, err)
}

func (t *transactor) hash(seq int64) (hash string, exists bool, err error) {
	args := []driver.NamedValue{{Ordinal: 1, Value: seq}}
	rows, err := t.hashOf.(driver.StmtQueryContext).QueryContext(context.Background(), args)
	if err != nil {
		return "", false, err
	}
	defer rows.Close()
	var v [1]driver.Value
	if err := rows.Next(v[:]); errors.Is(err, io.EOF) {
		return "", false, nil
	} else if err != nil {
		return "", false, err
	}
	hash, ok := v[0].(string)
	if !ok {
		return "", true, errDamaged
	}
	return hash, true, nil
}

func (t *transactor) newest() (head, error) {
	rows, err := t.last.(driver.StmtQueryContext).QueryContext(context.Background(), nil)
	if err != nil {
		return head{}, err
	}
	defer rows.Close()
	var v [3]driver.Value
	if err := rows.Next(v[:]); errors.Is(err, io.EOF) {
		return head{hash: zeroHash}, nil
	} else if err != nil {
		return head{}, err
	}
	seq, ok := v[0].(int64)
	ts, isText := v[1].(string)
	hash, isHash := v[2].(string)
	if !ok || !isText || !isHash {
		return head{}, fmt.Errorf("read the newest row: %w", errDamaged)
	}
	when, _ := time.Parse(timeFormat, ts) // of a row that somebody changed: verify finds it
	return head{seq: seq, ts: when, hash: hash}, nil
}

// bind makes r the i-th row of the next insert.
func (t *transactor) bind(i int, r *Row, fields string) {
	args := t.args[i*columnCount:]
	for i, v := range [columnCount]driver.Value{r.Seq, r.ID, r.stamp(), string(r.Event), r.SessionID, string(r.Source), string(r.Decision), r.Reason, r.ConnectorFQN, r.ConnectorVersion,
		r.Tool, r.Operation, r.Binding, r.Method, r.Scheme, r.Host, int64(r.Port), r.Path, r.HTTPVersion, int64(r.Status), r.RequestBytes, r.ResponseBytes,
		int64(r.Redactions), r.DurationUS, fields, r.PrevHash, r.Hash} {
		args[i].Value = v
	}
}

func run(s driver.Stmt, args []driver.NamedValue) error {
	_, err := s.(driver.StmtExecContext).ExecContext(context.Background(), args)
	return err
}
