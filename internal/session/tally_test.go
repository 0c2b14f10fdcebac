package session

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/e2e/must"
)

func TestATallyGroupsWhatItCounts(t *testing.T) {
	var sum tally
	intent := audit.Row{Event: audit.EventProxyStarted, Host: "api.example"}
	read := audit.Row{Decision: audit.DecisionProxied, Binding: "bearer/tracker/work",
		ConnectorFQN: "github://acme/tracker",
		Tool:         "tracker", Operation: "read", Redactions: 2}
	other := read
	other.Operation = "write"
	denied := func(id, host, path string) audit.Row {
		return audit.Row{ID: id, Decision: audit.DecisionRejected, Reason: "operation_not_matched",
			Method: "GET", Host: host, Port: 443, Path: path}
	}
	byHost := func(path string) audit.Row {
		r := denied("H", "evil.example", path)
		r.Reason = "host_not_allowed"
		return r
	}
	flood := audit.Row{Decision: audit.DecisionRejected, Reason: "rate_exceeded", Fields: map[string]any{"requests": 40}}
	for _, r := range []audit.Row{
		intent, other, read, read, denied("A", "api.example", "/a"), denied("B", "api.example", "/a"),
		denied("C", "api.example", "/b"), byHost("/x"), byHost("/y"), byHost("/z"), flood,
		{Decision: audit.DecisionPassthrough},
	} {
		sum.add(&r)
	}
	got := sum.read()
	if got.Proxied != 3 || got.Passthrough != 1 || got.Rejected != 46 || got.Redactions != 6 {
		t.Errorf("the sums: %+v", got)
	}
	if uses := fmt.Sprint(got.Uses); uses != "[{bearer/tracker/work github://acme/tracker tracker read 2} "+
		"{bearer/tracker/work github://acme/tracker tracker write 1}]" {
		t.Errorf("the uses: %s", uses)
	}
	var refusals []string
	for _, f := range got.Refusals {
		refusals = append(refusals, fmt.Sprintf("%d %s %s%s %s", f.Requests, f.Reason, f.Host, f.Path, f.AuditID))
	}
	want := "40 rate_exceeded  |3 host_not_allowed evil.example H|2 operation_not_matched api.example/a A|" +
		"1 operation_not_matched api.example/b C"
	if strings.Join(refusals, "|") != want {
		t.Errorf("the refusals: %s\nwant %s", strings.Join(refusals, "|"), want)
	}
}

// A request that was sent and got no response is denied to its client, and has used what its row says.
func TestATallyCountsWhatARequestWithoutAResponseUsed(t *testing.T) {
	var sum tally
	sum.add(&audit.Row{Decision: audit.DecisionRejected, Reason: "upstream_reset", ConnectorFQN: "github://acme/model",
		Fields: map[string]any{"meters": map[string]int64{"tokens": 250}}})
	if got := sum.read(); got.Rejected != 1 || len(got.Spent) != 1 || got.Spent[0].Meters["tokens"] != 250 {
		t.Errorf("the sums: %+v", got)
	}
}

// Calls by name all have the same path of the API: they are told apart by what they name.
func TestATallyNamesWhatWasCalled(t *testing.T) {
	var sum tally
	call := func(id string, change func(*audit.Row)) {
		r := audit.Row{ID: id, Event: audit.EventOperationRejected, Source: audit.SourceConnectorShim,
			Decision: audit.DecisionRejected, Reason: "arguments_invalid", Method: "POST", Host: "aileron.internal",
			Port: 80, Path: "/v1/connector-operations/run", ConnectorFQN: "github://acme/tracker", Tool: "tracker",
			Operation: "issues.get"}
		change(&r)
		sum.add(&r)
	}
	for _, id := range []string{"A", "B", "C"} {
		call(id, func(*audit.Row) {})
	}
	for _, id := range []string{"D", "E"} {
		call(id, func(r *audit.Row) { r.Operation = "issues.list" })
	}
	for range 4 {
		call("F", func(r *audit.Row) { r.Fields = map[string]any{"action": "close-issue"} })
	}
	call("G", func(r *audit.Row) {
		r.ConnectorFQN, r.Tool, r.Operation, r.Reason = "", "", "", "operation_not_matched"
	})
	for range 5 {
		call("H", func(r *audit.Row) {
			r.Event, r.Reason, r.Host, r.Port = audit.EventProxyRejected, "approval_required", "api.tracker.example", 443
		})
	}
	var got []string
	for _, f := range sum.read().Refusals {
		got = append(got, fmt.Sprintf("%d %s at %s%s %s %s", f.Requests, f.Call, f.Host, f.Path, f.Reason, f.AuditID))
	}
	want := []string{
		"5 tracker issues.get at api.tracker.example approval_required H",
		"4 close-issue at aileron.internal arguments_invalid F",
		"3 tracker issues.get at aileron.internal arguments_invalid A",
		"2 tracker issues.list at aileron.internal arguments_invalid D",
		"1 " + UnnamedCall + " at aileron.internal operation_not_matched G",
	}
	if !slices.Equal(got, want) {
		t.Errorf("the refusals: %s\nwant %s", strings.Join(got, "|"), strings.Join(want, "|"))
	}
}

// Exactly what is listed, and nothing that only resembles it.
func TestATallyKeepsApartWhatTheCommandWorksWithout(t *testing.T) {
	optional := Request{"GET", "tips.example", "/tip"}
	sum := tally{optional: []Request{optional, {"GET", "never.example", "/"}}}
	row := audit.Row{ID: "A", Decision: audit.DecisionRejected, Reason: "host_not_allowed", Method: "GET",
		Host: "tips.example", Port: 443, Path: "/tip"}
	sum.add(&row)
	sum.add(&row)
	for _, change := range []func(*audit.Row){
		func(r *audit.Row) { r.Method = "POST" },
		func(r *audit.Row) { r.Host = "a.tips.example" },
		func(r *audit.Row) { r.Port = 8443 },
		func(r *audit.Row) { r.Path = "/tip/x" },
		func(r *audit.Row) { r.Reason = "address_not_allowed" },
	} {
		other := row
		change(&other)
		sum.add(&other)
	}
	got := sum.read()
	want := []Refusal{{Reason: "host_not_allowed", Method: "GET", Host: "tips.example", Port: 443, Path: "/tip",
		AuditID: "A", Requests: 2}}
	if !slices.Equal(got.Optional, want) {
		t.Errorf("Optional = %+v, want %+v", got.Optional, want)
	}
	others := 0
	for _, f := range got.Refusals {
		others += f.Requests
	}
	if others != 5 || got.Rejected != 7 {
		t.Errorf("%d other refusals of %d, want 5 of 7", others, got.Rejected)
	}
}

// A sandbox chooses its requests: it must not fill the session's memory with them.
func TestATallyIsBounded(t *testing.T) {
	var sum tally
	for i := range 2 * maxRefusals {
		sum.add(&audit.Row{Decision: audit.DecisionRejected, Reason: "operation_not_matched", Method: "GET",
			Host: "api.example", Path: fmt.Sprintf("/%d/%s", i, strings.Repeat("x", 60_000))})
		sum.add(&audit.Row{Decision: audit.DecisionProxied, Binding: fmt.Sprint("b", i), Operation: "read"})
	}
	got := sum.read()
	if len(got.Refusals) != maxRefusals || got.MoreDenied != maxRefusals || got.Rejected != 2*maxRefusals {
		t.Errorf("%d refusals and %d more of %d", len(got.Refusals), got.MoreDenied, got.Rejected)
	}
	if len(got.Uses) != maxUses || got.MoreUses != maxUses {
		t.Errorf("%d uses and %d more", len(got.Uses), got.MoreUses)
	}
	if n := len(got.Refusals[0].Path); n != maxTallyPath {
		t.Errorf("a path of %d bytes, want %d", n, maxTallyPath)
	}
}

// The report names the rows of refusals: one that could not be recorded is not among them.
func TestARowThatIsNotRecordedIsNotCounted(t *testing.T) {
	log, err := audit.Open(filepath.Join(t.TempDir(), "audit.db"), audit.Options{})
	must.Do(t, err)
	var sum tally
	row := audit.Row{ID: audit.NewID(), Event: audit.EventSandboxRejected, SessionID: audit.NewID(),
		Decision: audit.DecisionRejected, Reason: "host_not_allowed", Host: "evil.example"}
	if _, err := (tallied{log, &sum}).Append(t.Context(), row); err != nil || sum.read().Rejected != 1 {
		t.Errorf("recorded: %v, %+v", err, sum.read())
	}
	must.Do(t, log.Close())
	if _, err := (tallied{log, &sum}).Append(t.Context(), row); err == nil || sum.read().Rejected != 1 {
		t.Errorf("not recorded: %v, %+v", err, sum.read())
	}
}
