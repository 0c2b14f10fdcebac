package api

import (
	"context"
	"net/http"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/proxy"
	"github.com/ALRubinger/aileron/proxy/budget"
	"github.com/ALRubinger/aileron/spec"
)

// A call for which there is no memory is not read.
func TestACallIsReadWithinTheBudget(t *testing.T) {
	c := &call{hold: budget.New(1 << 10).Conn().Hold(nil), r: &http.Request{Body: http.NoBody}}
	if d := c.read(func([]byte) error { return nil }); d == nil || d.Reason != proxy.ReasonMemory {
		t.Errorf("without memory it is read: %v", d)
	}
}

// The names that resemble an unknown one are looked for in the turn of listings.
func TestAnUnknownNameWaitsForItsTurn(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	c := &call{api: New(nil), r: (&http.Request{Body: http.NoBody}).WithContext(ctx)}
	index := must.Get(spec.NewIndex(nil))(t)
	in := spec.Invocation{Connector: "github://acme/none", Tool: "none", Operation: "none"}
	if _, d := c.unknown(index, in); d.Reason != proxy.ReasonNotMatched {
		t.Errorf("denied for %s, want %s", d.Reason, proxy.ReasonNotMatched)
	}
	c.api.listings <- struct{}{} // of another
	cancel()
	if _, d := c.unknown(index, in); d.Reason != proxy.ReasonClientGone {
		t.Errorf("denied for %s, want %s", d.Reason, proxy.ReasonClientGone)
	}
}
