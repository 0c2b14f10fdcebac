package spending_test

import (
	"fmt"
	"testing"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/internal/config"
	"github.com/ALRubinger/aileron/internal/spending"
)

// outcome is the row of a metered request, as the log returns it.
func outcome(model string, tokens float64) *audit.Row {
	return &audit.Row{Event: audit.EventProxyProxied, Decision: audit.DecisionProxied, RequestBytes: 10, ResponseBytes: 20,
		ConnectorFQN: "github://acme/model", Fields: map[string]any{"meters": map[string]any{"tokens": tokens},
			"meters_model": model}}
}

func TestAnUpstreamDoesNotChooseHowManyModelsAreToldApart(t *testing.T) {
	sum := spending.New(config.Prices{}, 3, spending.ModelOf)
	for i := range 100 {
		sum.Add(outcome(fmt.Sprint("m", i), 1))
	}
	uses := sum.Uses()
	if len(uses) != 4 || uses[0].Name != spending.Other || uses[0].Requests != 97 || uses[0].Meters["tokens"] != 97 {
		t.Errorf("uses of 100 models: %+v, want three of them and what the others used", uses)
	}
}

// A row of the log is what an upstream said, or someone who changed the log: only numbers and short words count.
func TestWhatIsNoNumberAndNoNameIsNotCounted(t *testing.T) {
	sum := spending.New(config.Prices{}, 10, spending.ModelOf)
	for _, model := range []any{"a\x1b[31m", 7, nil, "a b"} {
		r := outcome("", 1)
		r.Fields["meters_model"] = model
		sum.Add(r)
	}
	for _, meters := range []any{map[string]any{"tokens": "9", "a b": 1.0}, map[string]any{"tokens": -1.0}, "x",
		map[string]any{"tokens": 1e300}} {
		r := outcome("", 1)
		r.Fields["meters"] = meters
		sum.Add(r)
	}
	uses := sum.Uses()
	if len(uses) != 1 || uses[0].Name != "" || uses[0].Meters["tokens"] != 4 || len(uses[0].Meters) != 1 ||
		uses[0].Requests != 8 || uses[0].Bytes != 240 {
		t.Errorf("uses: %+v", uses)
	}
}

// Of two patterns the longer one counts, a name before both, and the connector's price where the model has none.
func TestAPriceIsTheClosestOne(t *testing.T) {
	p := config.Prices{Model: map[string]map[string]float64{"m*": {"tokens": 1}, "m-2*": {"tokens": 2},
		"m-2-x": {"tokens": 3}}, Connector: map[string]map[string]float64{"model": {"tokens": 9, "requests": 5e6}}}
	for model, want := range map[string]float64{"m-1": 1, "m-2": 2, "m-2-y": 2, "m-2-x": 3, "other": 9, "": 9} {
		sum := spending.New(p, 10, spending.ModelOf)
		sum.Add(outcome(model, 1e6))
		if u := sum.Uses(); u[0].Cost == nil || *u[0].Cost != want+5 {
			t.Errorf("a million of %q: %+v, want %v and 5 for the request", model, u[0], want)
		}
	}
}

func TestADenialUsesNothing(t *testing.T) {
	sum := spending.New(config.Prices{}, 10, spending.ModelOf)
	r := outcome("m", 0) // which was not sent
	r.Event, r.Decision = audit.EventProxyRejected, audit.DecisionRejected
	sum.Add(r)
	sum.Add(&audit.Row{Event: audit.EventProxyStarted})
	if uses := sum.Uses(); len(uses) != 0 {
		t.Errorf("uses: %+v", uses)
	}
	sum.Add(&audit.Row{Event: audit.EventProxyUnknown})
	if uses := sum.Uses(); len(uses) != 1 || uses[0].Requests != 1 || uses[0].Unknown != 1 {
		t.Errorf("uses of an outcome that is not known: %+v", uses)
	}
}

// A request that was sent and got no response counts in a budget by its estimate, so it does in the sums.
func TestARequestWithoutAResponseUsesItsEstimate(t *testing.T) {
	sum := spending.New(config.Prices{}, 10, spending.ModelOf)
	r := outcome("", 5)
	r.Event, r.Decision, r.Reason = audit.EventProxyRejected, audit.DecisionRejected, "upstream_reset"
	r.Fields["meters_estimated"] = []any{"tokens"}
	sum.Add(r)
	if uses := sum.Uses(); len(uses) != 1 || uses[0].Meters["tokens"] != 5 || uses[0].Estimated != 1 {
		t.Errorf("uses: %+v", uses)
	}
}
