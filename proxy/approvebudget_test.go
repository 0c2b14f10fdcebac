package proxy

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/proxy/approval"
	"github.com/ALRubinger/aileron/proxy/meter"
)

// What waits for a person takes nothing of a budget from what is sent meanwhile, and is denied if nothing is left then.
func TestARequestThatWaitsTakesNothing(t *testing.T) {
	a := newAsks(t, time.Minute, func(http.ResponseWriter, *http.Request) {}, func(c *Config) {
		c.Ledger = meter.New(meter.Options{Limits: meter.Limits{meter.Requests: 1}})
	})
	held := a.later(mergeURL, "")
	question := a.pending(1)[0]
	if res, body := a.do("GET", "https://api.good.example/v1/things/7", ""); res.StatusCode != http.StatusOK {
		t.Errorf("while another waits: %d %s", res.StatusCode, body)
	}
	a.approve(question.ID)
	if status, body := held(); status != http.StatusTooManyRequests || !strings.Contains(body, "budget_exhausted") {
		t.Errorf("after that: %d %s, want the budget to be used up", status, body)
	}
}

// A person is not asked about the budget of a request that has no credential, and is denied for that.
func TestNobodyIsAskedAboutABudgetInVain(t *testing.T) {
	a := newAsks(t, time.Second, func(http.ResponseWriter, *http.Request) {}, func(c *Config) {
		c.Ledger = meter.New(meter.Options{Limits: meter.Limits{meter.Requests: 1}})
		c.AskAtLimit = true
	})
	const url = "https://api.good.example/v1/things/7"
	if res, body := a.do("GET", url, ""); res.StatusCode != http.StatusOK {
		t.Fatalf("within the budget: %d %s", res.StatusCode, body)
	}
	a.grant("")
	if res, body := a.do("GET", url, ""); res.StatusCode != http.StatusForbidden ||
		!strings.Contains(body, "binding_required") || len(a.queue.List()) != 0 {
		t.Errorf("without a credential: %d %s, and %d questions", res.StatusCode, body, len(a.queue.List()))
	}
}

// The outcome of a request has every approval by which it passed.
func TestARequestThatNeedsTwoApprovalsNamesBoth(t *testing.T) {
	a := newAsks(t, time.Hour, func(http.ResponseWriter, *http.Request) {}, func(c *Config) {
		c.Ledger = meter.New(meter.Options{Limits: meter.Limits{meter.Requests: 1}})
		c.AskAtLimit = true
	})
	if res, body := a.do("GET", "https://api.good.example/v1/things/7", ""); res.StatusCode != http.StatusOK {
		t.Fatalf("within the budget: %d %s", res.StatusCode, body)
	}
	held := a.later(mergeURL, "")
	ofBudget := a.pending(1)[0]
	a.approve(ofBudget.ID)
	var ofOperation approval.Question
	a.eventually(func() bool { ofOperation = a.pending(1)[0]; return ofOperation.ID != ofBudget.ID })
	a.approve(ofOperation.ID)
	if status, body := held(); status != http.StatusOK {
		t.Fatalf("after both approvals: %d %s", status, body)
	}
	rows := a.rows()
	i := slices.IndexFunc(rows, func(r audit.Row) bool {
		return r.Event == audit.EventProxyProxied && r.Operation == "merge"
	})
	if i < 0 || rows[i].Fields["approval_id"] != ofOperation.ID ||
		fmt.Sprint(rows[i].Fields["earlier_approvals"]) != "["+ofBudget.ID+"]" {
		t.Errorf("the outcome is in %+v, want approvals %s and %s", rows, ofBudget.ID, ofOperation.ID)
	}
}
