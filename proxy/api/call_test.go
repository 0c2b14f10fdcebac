package api

import (
	"net/http"
	"testing"

	"github.com/ALRubinger/aileron/proxy"
	"github.com/ALRubinger/aileron/proxy/budget"
)

// A call for which there is no memory is not read.
func TestACallIsReadWithinTheBudget(t *testing.T) {
	c := &call{hold: budget.New(1 << 10).Conn().Hold(nil), r: &http.Request{Body: http.NoBody}}
	if d := c.read(func([]byte) error { return nil }); d == nil || d.Reason != proxy.ReasonMemory {
		t.Errorf("without memory it is read: %v", d)
	}
}
