package audit

import (
	"path/filepath"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
)

// groupedLog returns a log of n rows, and these.
func groupedLog(t *testing.T, n int) (*Log, []Row) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "audit.db")
	largeLog(t, path, n)
	l := must.Get(OpenReader(path))(t)
	t.Cleanup(func() { closeLog(t, l) })
	rows := must.Get(l.List(t.Context(), Filter{}))(t)
	return l, rows
}

// columnsOf are the columns that rows of a group have in common.
func columnsOf(r Row, hosts bool) Group {
	g := Group{Session: r.SessionID, Binding: r.Binding, Connector: r.ConnectorFQN, Tool: r.Tool, Operation: r.Operation,
		Reason: r.Reason, Event: r.Event, Decision: r.Decision}
	if hosts {
		g.Host = r.Host
	}
	return g
}

// A limit selects the newest rows, intents among them.
func TestGroupsOfTheNewestRows(t *testing.T) {
	l, rows := groupedLog(t, 1000)
	groups := must.Get(l.Groups(t.Context(), Filter{Limit: 10, Newest: true}, GroupBy{Intents: true}))(t)
	n := int64(0)
	for _, g := range groups {
		if n += g.Rows; g.First.Before(rows[len(rows)-10].TS) {
			t.Errorf("the group %+v has a row before the newest ten", g)
		}
	}
	if n != 10 {
		t.Errorf("%d rows are counted, want 10", n)
	}
}
