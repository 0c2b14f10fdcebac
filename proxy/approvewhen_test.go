package proxy

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/proxy/approval"
)

const (
	branchURL = "https://api.good.example/v1/branches/"
	sendURL   = "https://api.good.example/v1/send"
)

// asked reports whether a request with JSON waits for an approval, and fails if it is neither sent nor asked about.
func (a *asks) asked(target, body string, header ...string) bool {
	a.t.Helper()
	before := len(a.requests())
	if len(header) == 0 {
		header = []string{"Content-Type", "application/json"}
	}
	res, got := a.do("PUT", target, body, header...)
	sent := len(a.requests()) - before
	if res.StatusCode == 200 && sent == 1 {
		return false
	}
	if sent != 0 {
		a.t.Errorf("PUT %s %s: %d requests were sent", target, body, sent)
	}
	deniedAs(a.t.(*testing.T), res.StatusCode, got, 403, ReasonApproval)
	for _, q := range a.queue.List() { // no more than so many may wait
		_, _ = a.queue.Decide(a.t.Context(), q.ID, approval.Decision{For: approval.Once, Surface: "cli"})
	}
	return true
}

func TestAnOperationAsksWhenItsConditionsHold(t *testing.T) {
	a := newAsks(t, time.Millisecond, hello)
	for target, want := range map[string]bool{
		"dev": false, "main": true, "Main": true, "release%20x": false, "mainly": false, "main.json": true,
		"%C3%A9": true, "main+": true,
	} {
		if got := a.asked(branchURL+target, "x", "Content-Type", "text/plain"); got != want {
			t.Errorf("the branch %q is asked about: %t", target, got)
		}
	}
	// An operation that does not ask sends what would be read to ask, as ever, in any type.
	if a.asked(branchURL+"dev", strings.Repeat("x", maxDigested+1), "Content-Type", "text/plain") {
		t.Error("a long body is asked about, though no condition is for it")
	}
	const general, random = `{"channel":"general"}`, `{"channel":"random"}`
	for _, c := range []struct {
		query, body string
		want        bool
		header      []string
	}{
		{query: "?to=all", body: general, want: true},
		{query: "?to=all", body: random},
		{query: "?to=me", body: general},
		{query: "?to=me", body: "what is no JSON", want: true}, // some servers take a parameter from either
		{query: "?to=me", body: "to=all", want: true, header: []string{"Content-Type", "application/x-www-form-urlencoded"}},
		{query: "?to=me", body: `{"channel":"general","To":"all"}`, want: true},
		{query: "?to=me", body: `{"channel":"general","_method":"DELETE"}`, want: true},
		{query: "?to=a%6Cl", body: `{"channel":"gener\u0061l"}`, want: true},
		{query: "", body: general, want: true},
		{query: "", body: random},
		{query: "?to=me&to=all", body: general, want: true},
		{query: "?to=all", body: `{"channel":"random","channel":"general"}`, want: true},
		{query: "?to=all", body: `{"channel":"random","Channel":"general"}`, want: true},
		{query: "?to=all", body: `{"channel":"random","ch\u0061nnel":"general"}`, want: true},
		{query: "?to=all", body: `{"channel":"random","N":1}`, want: true},
		{query: "?to=all", body: `{"channel":"random","__proto__":{"channel":"general"}}`, want: true},
		{query: "?to=all", body: `{"n":1}`, want: true},
		{query: "?to=all", body: `{"channel":["general"]}`, want: true},
		{query: "?to=all", body: `{"channel":["random"]}`, want: true},
		{query: "?to=all", body: `{"channel":7}`, want: true},
		{query: "?to=all", body: `{"channel":null}`, want: true},
		{query: "?to=all", body: `{"channel":"rand\u00f6m"}`, want: true},
		{query: "?to=all", body: `[` + random + `]`, want: true},
		{query: "?to=all", body: random + random, want: true},
		{query: "?to=all", body: "\ufeff" + random, want: true},
		{query: "?to=all", body: `{"channel":"random",}`, want: true},
		{query: "?to=all", body: "", want: true},
		{query: "?to=all", body: `{"channel":"random","x":"` + strings.Repeat("x", 256<<10) + `"}`, want: true},
		{query: "?to=all", body: random, want: true, header: []string{"Content-Type", "application/x-www-form-urlencoded"}},
		{query: "?to=all", body: random, want: true, header: []string{"Content-Type", "application/json; charset=utf-7"}},
		{query: "?to=all", body: random, want: true, header: []string{"X-Declared", "x"}}, // no Content-Type
		{query: "?to=all", body: random, want: true,
			header: []string{"Content-Type", "application/json", "X-Original-Url", "/v1/send?to=all"}},
		{query: "?to=me", body: random, want: true,
			header: []string{"Content-Type", "application/json", "X-Http-Method-Override", "POST"}},
	} {
		if got := a.asked(sendURL+c.query, c.body, c.header...); got != c.want {
			t.Errorf("%s %.60s %v is asked about: %t", c.query, c.body, c.header, got)
		}
	}
	if last := a.bodies[len(a.bodies)-1]; last == "" {
		t.Error("a body that was read to be judged was not sent")
	}
}

// A decision for the session is about the operation, and no condition gets round it.
func TestARequestWithoutItsConditionNeedsNoDecision(t *testing.T) {
	a := newAsks(t, time.Hour, hello)
	var status int
	done := make(chan struct{})
	go func() {
		defer close(done)
		res, _ := a.do("PUT", branchURL+"main", "x")
		status = res.StatusCode
	}()
	id := a.pending(1)[0].ID
	if _, err := a.queue.Decide(t.Context(), id, approval.Decision{For: approval.Session, Surface: "cli"}); err != nil {
		t.Fatal(err)
	}
	if <-done; status != http.StatusForbidden {
		t.Errorf("what was denied got %d", status)
	}
	if res, body := a.do("PUT", branchURL+"dev", "x"); res.StatusCode != 200 {
		t.Errorf("what does not ask: %d %s", res.StatusCode, body)
	}
	if res, body := a.do("PUT", branchURL+"main", "x"); res.StatusCode != 403 {
		t.Errorf("what is denied for the session: %d %s", res.StatusCode, body)
	}
	if row := a.last(); row.Event != audit.EventProxyRejected || row.Reason != string(ReasonApprovalDenied) {
		t.Errorf("the row is %+v", row)
	}
	if got := a.events(); !slices.Equal(got, []string{"requested", "denied"}) {
		t.Errorf("the events are %v", got)
	}
}
