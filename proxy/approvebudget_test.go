package proxy

import (
	"net/http"
	"strings"
	"testing"
	"time"

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
