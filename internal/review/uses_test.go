package review

import (
	"testing"
	"time"

	"github.com/ALRubinger/aileron/audit"
)

// A denial before a credential was chosen is counted with the one that its session used for the connector, and with
// none if that is not certain.
func TestDenialsAreCountedWithTheCredentialOfTheirConnector(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	group := func(session, connector, binding string, decision audit.Decision, n int64) audit.Group {
		return audit.Group{Session: session, Connector: connector, Binding: binding, Decision: decision, Rows: n, Requests: n,
			First: at, Last: at}
	}
	groups := []audit.Group{
		group("one", "github", "work", audit.DecisionProxied, 3), group("one", "github", "", audit.DecisionRejected, 5),
		group("two", "github", "home", audit.DecisionProxied, 1), group("two", "github", "", audit.DecisionRejected, 7),
		group("three", "github", "", audit.DecisionRejected, 11), // of work or of home
		group("three", "npm", "", audit.DecisionRejected, 13),    // of token, the only one
		group("two", "npm", "token", audit.DecisionProxied, 1),
		group("one", "", "", audit.DecisionRejected, 17),
	}
	agents := &Agents{Open: func() (Log, error) { return nil, nil }}
	want := map[string]int64{"work": 5, "home": 7, "token": 13, "": 28}
	uses := Uses(t.Context(), groups, agents)
	for _, u := range uses {
		if u.Refused != want[u.Binding] {
			t.Errorf("%d denials are counted with %q, want %d", u.Refused, u.Binding, want[u.Binding])
		}
	}
	if len(uses) != len(want) || uses[len(uses)-1].Binding != "" {
		t.Errorf("Uses = %+v", uses)
	}
	if by := UsesBySession(t.Context(), groups, agents, "token"); len(by) != 2 || by[0].Refused != 13 || by[1].Sent != 1 {
		t.Errorf("UsesBySession = %+v", by)
	}
}
