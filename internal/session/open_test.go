package session

import (
	"slices"
	"testing"

	"github.com/ALRubinger/aileron/internal/hostport/hosttest"
	"github.com/ALRubinger/aileron/spec"
)

func TestTunnelledHostsFollowTheOneRule(t *testing.T) {
	index, err := spec.NewIndex(nil)
	fatal(t, err)
	for _, c := range hosttest.Cases {
		t.Run(c.Why, func(t *testing.T) {
			var want []string
			if c.Name != "" {
				want = []string{c.Name + ":8443"}
			}
			got, err := tunnelHosts([]string{c.Host + ":8443"}, index)
			if !slices.Equal(got, want) || (err == nil) != (want != nil) {
				t.Errorf("tunnel = [%q] is %q, %v, want %q", c.Host+":8443", got, err, want)
			}
		})
	}
}
