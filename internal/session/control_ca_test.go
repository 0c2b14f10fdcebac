package session

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/spec"
)

// Only a session of this host has a root that programs of this host may trust, and it is for what connectors declare.
func TestOnlyASessionOfTheHostHasARootForTheHost(t *testing.T) {
	for mode, want := range map[string]bool{"proxy": true, "off": true, "podman": false, "docker": false} {
		o := newOptions(t)
		o.Mode = mode
		install(t, o.Home)
		s := open(t, o)
		c, err := State{ID: s.ID(), State: "running"}.Certificate(t.Context(), o.Home)
		fatal(t, err)
		if slices.Contains(c.Names, "api.github.com") != want || len(c.Names) > 0 != want ||
			(c.PEM == string(s.RootPEM())) == want {
			t.Errorf("%s: the names are %q, want some: %v", mode, c.Names, want)
		}
		s.Abandon(t.Context())
		if _, err := (State{ID: s.ID(), State: "ended"}).Certificate(t.Context(), o.Home); err == nil ||
			!strings.Contains(err.Error(), "its CA ended with it") {
			t.Errorf("of an ended session: %v", err)
		}
	}
}

// Each handshake sends the names: more than a few hundred are no names at all.
func TestTheNamesOfAHostRootAreBounded(t *testing.T) {
	for n, want := range map[int]int{maxHostNames: maxHostNames, maxHostNames + 1: 0} {
		c := &spec.Connector{FQN: "github://acme/many", Version: "1.0.0"}
		for i := range n {
			c.Tools = append(c.Tools, spec.Tool{Operations: []*spec.Operation{{
				Connector: c, Hosts: []spec.HostPattern{{Name: fmt.Sprintf("h%d.example", i), Port: 443}},
			}}})
		}
		index, err := spec.NewIndex([]*spec.Connector{c})
		fatal(t, err)
		if got := len(Options{Mode: "proxy"}.hostNames(index)); got != want {
			t.Errorf("%d hosts make %d names, want %d", n, got, want)
		}
	}
}
