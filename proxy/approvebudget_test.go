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
