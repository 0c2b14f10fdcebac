package audit

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"time"
)

// transactor writes transactions on one connection with statements that are
// prepared once. It speaks to the driver: preparing and converting cost more
// than the rows do, and every request waits for two of them.
type transactor struct {
	conn                          *sql.Conn
	begin, commit, rollback, last driver.Stmt
	insert                        driver.Stmt
	args                          [27]driver.NamedValue
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
			"BEGIN IMMEDIATE": &t.begin, "COMMIT": &t.commit, "ROLLBACK": &t.rollback, selectHead: &t.last, insertRow: &t.insert,
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
		for _, s := range []driver.Stmt{t.begin, t.commit, t.rollback, t.last, t.insert} {
			if s != nil {
				_ = s.Close()
			}
		}
		return nil
	})
	_ = t.conn.Close()
}

// do runs f in one transaction. f gets the newest row and a function that
// adds one.
func (t *transactor) do(f func(head, func(*Row, []byte) error) error) error {
	return t.conn.Raw(func(any) error {
		if err := run(t.begin, nil); err != nil {
			return err
		}
		err := t.fill(f)
		if err == nil {
			err = run(t.commit, nil)
		}
		if err != nil {
			_ = run(t.rollback, nil)
		}
		return err
	})
}

func (t *transactor) fill(f func(head, func(*Row, []byte) error) error) error {
	h, err := t.newest()
	if err != nil {
		return err
	}
	return f(h, t.add)
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

func (t *transactor) add(r *Row, fields []byte) error {
	for i, v := range [...]driver.Value{r.Seq, r.ID, r.TS.Format(timeFormat), r.Event, r.SessionID, r.Source, r.Decision, r.Reason, r.ConnectorFQN, r.ConnectorVersion,
		r.Tool, r.Operation, r.Binding, r.Method, r.Scheme, r.Host, int64(r.Port), r.Path, r.HTTPVersion, int64(r.Status), r.RequestBytes, r.ResponseBytes,
		int64(r.Redactions), r.DurationUS, string(fields), r.PrevHash, r.Hash} {
		t.args[i].Value = v
	}
	return run(t.insert, t.args[:])
}

func run(s driver.Stmt, args []driver.NamedValue) error {
	_, err := s.(driver.StmtExecContext).ExecContext(context.Background(), args)
	return err
}
