package gateway

import (
	"testing"

	"github.com/ALRubinger/aileron/internal/hostport/hosttest"
)

func TestQueriedNamesFollowTheOneRule(t *testing.T) {
	for _, c := range hosttest.Cases {
		t.Run(c.Why, func(t *testing.T) {
			// DNS writes a name with a dot at its end.
			if name, ok := plainName(c.Host + "."); name != c.Name || ok != (c.Name != "") {
				t.Errorf("plainName(%q) = %q, %v, want %q", c.Host+".", name, ok, c.Name)
			}
		})
	}
}
