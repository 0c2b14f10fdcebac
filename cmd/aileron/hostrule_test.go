package main

import (
	"slices"
	"testing"

	"github.com/ALRubinger/aileron/internal/hostport/hosttest"
	"github.com/ALRubinger/aileron/spec"
)

func TestConfiguredHostsFollowTheOneRule(t *testing.T) {
	index, err := spec.NewIndex(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range hosttest.Cases {
		t.Run(c.Why, func(t *testing.T) {
			var want []string
			resolved := ""
			if c.Name != "" {
				want, resolved = []string{c.Name + ":8443"}, c.Name+":8443"
			}
			if got, err := tunnelHosts([]string{c.Host + ":8443"}, index); !slices.Equal(got, want) || (err == nil) != (want != nil) {
				t.Errorf("tunnel = [%q] is %q, %v, want %q", c.Host+":8443", got, err, want)
			}
			if got, _, err := parseResolve(c.Host + ":8443:192.0.2.1"); got != resolved || (err == nil) != (resolved != "") {
				t.Errorf("--resolve %q is for %q, %v, want %q", c.Host+":8443:192.0.2.1", got, err, resolved)
			}
		})
	}
}
