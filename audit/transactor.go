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
	one, two                      driver.Stmt // insert so many rows
	args                          [2 * columnCount]driver.NamedValue
	head                          head
	knows                         bool // head was the newest row after our last commit
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
			insertRow + ", " + placeholders: &t.two,
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

func (t *transactor) close() {
	_ = t.conn.Raw(func(any) error {
		for _, s := range []driver.Stmt{t.begin, t.commit, t.rollback, t.last, t.one, t.two} {
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
// ours, and all is done again from what the table says.
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
		return head{}, fmt.Errorf("read the newest row: it is not of the table's types")
	}
	when, _ := time.Parse(timeFormat, ts) // of a row that somebody changed: verify finds it
	return head{seq: seq, ts: when, hash: hash}, nil
}

// bind makes r the i-th row of the next insert.
func (t *transactor) bind(i int, r *Row, fields string) {
	args := t.args[i*columnCount:]
	for i, v := range [columnCount]driver.Value{r.Seq, r.ID, r.stamp(), r.Event, r.SessionID, r.Source, r.Decision, r.Reason, r.ConnectorFQN, r.ConnectorVersion,
		r.Tool, r.Operation, r.Binding, r.Method, r.Scheme, r.Host, int64(r.Port), r.Path, r.HTTPVersion, int64(r.Status), r.RequestBytes, r.ResponseBytes,
		int64(r.Redactions), r.DurationUS, fields, r.PrevHash, r.Hash} {
		args[i].Value = v
	}
}

func run(s driver.Stmt, args []driver.NamedValue) error {
	_, err := s.(driver.StmtExecContext).ExecContext(context.Background(), args)
	return err
}
