package main

import (
	"testing"

	"github.com/ALRubinger/aileron/internal/hostport/hosttest"
	"github.com/ALRubinger/aileron/internal/networks"
)

func TestResolvedHostsFollowTheOneRule(t *testing.T) {
	for _, c := range hosttest.Cases {
		t.Run(c.Why, func(t *testing.T) {
			resolved := ""
			if c.Name != "" {
				resolved = c.Name + ":8443"
			}
			got, _, err := networks.ParseResolve(c.Host + ":8443:192.0.2.1")
			if got != resolved || (err == nil) != (resolved != "") {
				t.Errorf("--resolve %q is for %q, %v, want %q", c.Host+":8443:192.0.2.1", got, err, resolved)
			}
		})
	}
}
