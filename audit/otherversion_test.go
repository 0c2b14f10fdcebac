package audit

import (
	"fmt"
	"slices"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
)

// Rows of another version, with events, reasons, columns' words and fields that this one does not know, and without
// those that it writes, are read, counted and verified as they are.
func TestRowsOfAnotherVersionAreReadAndVerified(t *testing.T) {
	path := history(t, t.TempDir(), "first", 3)
	strange := []Row{
		{Event: "sandbox.weather.changed", SessionID: "first", Source: "weather_station", Decision: "postponed",
			Reason: "it_rains", Fields: map[string]any{"drops": map[string]any{"size": []any{1.5, nil, true}}}},
		{Event: EventProxyStarted, SessionID: "first"}, // without a request_id
		{Event: EventSandboxRejected, SessionID: "first", Decision: DecisionRejected, Reason: "no_request",
			Fields: map[string]any{"requests": "many", "hosts": 7, "later": "x"}},
	}
	l := openSession(t, path, "")
	for _, r := range strange {
		must.Get(l.Append(t.Context(), r))(t)
	}
	closeLog(t, l)
	rows, report := all(t, path)
	if !report.OK {
		t.Errorf("Verify = %+v", report)
	}
	for i, want := range strange {
		got := rows[len(rows)-len(strange)+i]
		if got.Event != want.Event || got.Reason != want.Reason || fmt.Sprint(got.Fields) != fmt.Sprint(want.Fields) {
			t.Errorf("row %+v, want %+v", got, want)
		}
	}
	r := must.Get(OpenReader(path))(t)
	defer r.Close()
	sum, _, err := r.Summarize(t.Context(), Filter{})
	must.Do(t, err)
	if sum.Events["sandbox.weather.changed"] != 1 || sum.Reasons["it_rains"] != 1 || sum.Decisions["postponed"] != 1 {
		t.Errorf("Summarize = %+v", sum)
	}
	got := must.Get(r.List(t.Context(), Filter{Event: "sandbox.weather.changed"}))(t)
	if len(got) != 1 || slices.Contains(Events(), got[0].Event) {
		t.Errorf("List = %+v", got)
	}
}
