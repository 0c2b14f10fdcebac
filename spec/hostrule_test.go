package spec

import (
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/internal/hostport/hosttest"
)

// A connector names only hosts that a request can name, written as a request
// may write them, and of these only names of two labels or more.
func TestNamedHostsFollowTheOneRule(t *testing.T) {
	for _, c := range hosttest.Cases {
		t.Run(c.Why, func(t *testing.T) {
			h, err := ParseHost(c.Host)
			switch want := (HostPattern{Name: c.Name, Port: 443}); {
			case c.Name != "" && !strings.Contains(c.Name, "."):
				if err == nil || !strings.Contains(err.Error(), "one label") {
					t.Errorf("ParseHost(%q) = %v, %v, want an error about its one label", c.Host, h, err)
				}
			case c.Name != "" && (err != nil || h != want):
				t.Errorf("ParseHost(%q) = %v, %v, want %v", c.Host, h, err, want)
			case c.Name == "" && err == nil:
				t.Errorf("ParseHost(%q) = %v, want an error", c.Host, h)
			}
		})
	}
}
