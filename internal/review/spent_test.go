package review

import (
	"path/filepath"
	"testing"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/internal/config"
)

// The sums of the log have all that budgets count: what was sent and got no response, too.
func TestWhatIsSpentHasRequestsWithoutAResponse(t *testing.T) {
	log := must.Get(audit.Open(filepath.Join(t.TempDir(), "audit.db"), audit.Options{}))(t)
	defer log.Close()
	row := audit.Row{SessionID: audit.NewID(), Source: audit.SourceConnectTLS, Event: audit.EventProxyProxied,
		Decision: audit.DecisionProxied, Fields: map[string]any{"meters": map[string]int64{"tokens": 3}}}
	reset := row
	reset.Event, reset.Decision, reset.Reason = audit.EventProxyRejected, audit.DecisionRejected, "upstream_reset"
	denied := reset
	denied.Reason, denied.Fields = "operation_not_matched", nil
	for _, r := range []audit.Row{row, reset, denied} {
		must.Get(log.Append(t.Context(), r))(t)
	}
	uses := must.Get(Spent(t.Context(), log, audit.Filter{}, config.Prices{}, "session"))(t)
	if len(uses) != 1 || uses[0].Requests != 2 || uses[0].Meters["tokens"] != 6 {
		t.Errorf("uses: %+v, want 6 tokens of two requests", uses)
	}
}
