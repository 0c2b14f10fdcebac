package faults

import (
	"fmt"
	"sync"
	"syscall"
	"testing"

	"github.com/ALRubinger/aileron/e2e/harness"
)

// The requests that a killed session had under way get an unknown outcome each,
// once, although several sessions start at the same moment; those of a session
// that runs are left alone.
func TestTheRequestsOfAKilledSessionHaveAnUnknownOutcome(t *testing.T) {
	u := newHome(t, "")
	killed, lives := u.serve(), u.serve()
	const requests, others = 30, 3
	var asked sync.WaitGroup
	ask := func(s *served, n int) {
		for range n {
			asked.Go(func() { _, _, _ = s.get("/stall") })
		}
	}
	ask(killed, requests)
	ask(lives, others)
	harness.WaitFor(t, "the requests arrive", func() bool { return len(u.origin.Seen()) == requests+others })
	killed.signal(syscall.SIGKILL)
	<-killed.ended
	if s := u.showSession(killed.session); s["state"] != "unclean" || s["without_outcome"] != float64(requests) ||
		s["unknown_outcomes"] != nil {
		t.Errorf("before the sweep, session show tells %v", s)
	}
	var starts []*running
	for range 4 {
		starts = append(starts, u.begin("run", "--", "true"))
	}
	for _, r := range starts {
		if res := r.end(); res.code != 0 {
			t.Errorf("exit %d: %s", res.code, res.err)
		}
	}
	intents := map[any]row{}
	for _, r := range u.rows("--session", killed.session, "--event", "connector.proxy.started") {
		intents[r["id"]] = r
	}
	unknown := u.rows("--event", "connector.proxy.unknown")
	if len(unknown) != requests || len(intents) != requests {
		t.Fatalf("%d intents and %d unknown outcomes, want %d", len(intents), len(unknown), requests)
	}
	for _, r := range unknown {
		fields, _ := r["fields"].(map[string]any)
		intent := intents[fields["intent_id"]]
		delete(intents, fields["intent_id"]) // each has one
		of, _ := intent["fields"].(map[string]any)
		if r["session_id"] != killed.session || of == nil || fields["request_id"] != of["request_id"] ||
			r["path"] != "/stall" ||
			r["binding"] != intent["binding"] || fields["sent"] != "none, a part or all of the request, with its credential" {
			t.Errorf("row %v of the intent %v", r, intent)
		}
	}
	if ended := u.rows("--session", killed.session, "--event", "session.ended"); len(ended) != 1 ||
		ended[0]["reason"] != "unclean" {
		t.Errorf("session.ended: %v", ended)
	}
	if s := u.showSession(killed.session); s["without_outcome"] != nil || s["unknown_outcomes"] != float64(requests) {
		t.Errorf("after the sweep, session show tells %v", s)
	}
	if s := u.showSession(lives.session); s["state"] != "running" || s["without_outcome"] != float64(others) ||
		s["unknown_outcomes"] != nil {
		t.Errorf("of a session that runs, session show tells %v", s)
	}
	close(u.origin.Release)
	asked.Wait()
	lives.signal(syscall.SIGTERM)
	if res := lives.end(); res.code != 0 {
		t.Errorf("exit %d: %s", res.code, res.err)
	}
	u.must("audit", "verify")
}

// showSession returns the output of session show.
func (u *user) showSession(id string) row {
	u.t.Helper()
	rows := harness.Rows[row](u.t, u.must("session", "show", id, "--json").out)
	if len(rows) != 1 {
		u.t.Fatalf("session show prints %s", fmt.Sprint(rows))
	}
	return rows[0]
}
