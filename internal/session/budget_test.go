package session

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/proxy/meter"
)

// A budget of bytes does not hold for what is tunnelled, and the owner who sets both is told so.
func TestABudgetOfBytesBesideATunnelIsToldOf(t *testing.T) {
	for name, c := range map[string]struct {
		limits meter.Limits
		tunnel []string
		told   bool
	}{
		"both":             {meter.Limits{meter.Bytes: 1000}, []string{"pinned.example"}, true},
		"no tunnel":        {meter.Limits{meter.Bytes: 1000}, nil, false},
		"a limit of other": {meter.Limits{"output_tokens": 1000}, []string{"pinned.example"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			var said strings.Builder
			o := newOptions(t)
			o.Budget, o.Config.Tunnel = c.limits, c.tunnel
			o.Infof = func(format string, args ...any) { fmt.Fprintf(&said, format, args...) }
			open(t, o)
			warned := strings.Contains(said.String(),
				"the budget of bytes does not see the hosts of tunnel in config.toml (pinned.example)")
			if warned != c.told {
				t.Errorf("told: %v, want %v: %s", warned, c.told, said.String())
			}
		})
	}
}
