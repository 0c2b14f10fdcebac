package proxy

import (
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/internal/hostport/hosttest"
)

func TestRequestedHostsFollowTheOneRule(t *testing.T) {
	for _, c := range hosttest.Cases {
		if strings.Contains(c.Host, "/") {
			continue // in a URL, its host ends there
		}
		t.Run(c.Why, func(t *testing.T) {
			want := Authority{Host: c.Name, Port: 443}
			a, _, d := ParseURL("https://" + c.Host + "/")
			if c.Name == "" {
				if d == nil || d.Reason != ReasonMalformed {
					t.Errorf("a request for the host %q is for %v, %v, want the reason %s", c.Host, a, d, ReasonMalformed)
				}
				return
			}
			if d != nil || a != want {
				t.Errorf("a request for the host %q is for %v, %v, want %v", c.Host, a, d, want)
			}
			if _, _, d := target(want, "https", "GET", "/", c.Host); d != nil {
				t.Errorf("the Host %q is refused for %v: %v", c.Host, want, d)
			}
		})
	}
}
