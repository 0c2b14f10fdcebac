package audit

import (
	"path/filepath"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
)

// A row of which a column has what separates columns is counted as any other.
// An evidence file may hold one, whatever a session writes.
func TestGroupsCountRowsWithASeparator(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.db")
	l := openTest(t, path)
	for _, operation := range []string{"a", "a\x1fb", "a\x1fb", "c"} {
		if _, err := l.Append(t.Context(), Row{Event: EventProxyProxied, SessionID: "S", Decision: DecisionProxied,
			Operation: operation, Host: "api.example.com", Redactions: 2}); err != nil {
			t.Fatal(err)
		}
	}
	groups := must.Get(l.Groups(t.Context(), Filter{}, GroupBy{Hosts: true}))(t)
	want := map[string]int64{"a": 1, "a\x1fb": 2, "c": 1}
	for _, g := range groups {
		if g.Rows != want[g.Operation] || g.Redactions != 2*g.Rows || g.Host != "api.example.com" {
			t.Errorf("Groups has %+v, want %d rows of it", g, want[g.Operation])
		}
		delete(want, g.Operation)
	}
	if len(want) > 0 {
		t.Errorf("Groups has no group for %v", want)
	}
}
