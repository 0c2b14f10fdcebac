package shims_test

import (
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/shims"
	"github.com/ALRubinger/aileron/spec"
)

func TestOneCommandHasOneSource(t *testing.T) {
	one, two := load(t, "tracker"), load(t, "open")
	two.Tools[0].Name = "Tracker"
	action := []shims.Action{{Name: "tracker"}}
	const connector = "aileron connector remove github://acme/tracker"
	const rival = "aileron connector remove github://acme/mirror"
	for _, c := range []struct {
		why   string
		set   shims.Set
		agent string
		words []string // of the error and its hint; none: there is no conflict
	}{
		{"two connectors", shims.Set{Connectors: []*spec.Connector{one, two}}, "claude",
			[]string{"github://acme/tracker 1.2.0", "github://acme/mirror 0.1.0", connector, rival}},
		{"a connector and an action", shims.Set{Connectors: []*spec.Connector{one}, Actions: action}, "claude",
			[]string{"github://acme/tracker", "the action tracker", connector, "aileron action remove tracker"}},
		{"a connector and the agent", shims.Set{Connectors: []*spec.Connector{one}}, "/usr/bin/TRACKER",
			[]string{"github://acme/tracker", "this session: /usr/bin/TRACKER", connector}},
		{"an action and the agent", shims.Set{Actions: action}, "tracker",
			[]string{"the action tracker", "this session: tracker", "aileron action remove tracker"}},
		{"no conflict", shims.Set{Connectors: []*spec.Connector{one}, Actions: []shims.Action{{Name: "triage"}}}, "claude",
			nil},
	} {
		err := c.set.Conflict(c.agent)
		if (err == nil) != (c.words == nil) {
			t.Errorf("%s: %v", c.why, err)
			continue
		}
		for _, word := range c.words {
			if text := err.Error() + "\n" + hint.Of(err); !strings.Contains(text, word) {
				t.Errorf("%s: %q has no %q", c.why, text, word)
			}
		}
	}
}
