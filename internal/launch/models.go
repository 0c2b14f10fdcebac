package launch

import (
	"slices"
	"strings"

	"github.com/ALRubinger/aileron/proxy/front"
	"github.com/ALRubinger/aileron/sandbox/agents"
	"github.com/ALRubinger/aileron/spec"
)

// model is an endpoint of a provider that a session serves to its command.
type model struct {
	front.Model

	variable string   // gets its URL
	keys     []string // NAME=KEY: in place of the connectors' placeholders
}

type models []model

// modelsOf returns the endpoints whose provider a connector has a credential for, and a placeholder of it. random
// returns a text that cannot be guessed.
//
// A key ends as the placeholder does: Claude Code remembers by that whether its user lets it use the key.
func modelsOf(endpoints []agents.Endpoint, connectors []*spec.Connector, random func() string) models {
	var all models
	for _, e := range endpoints {
		m := model{Model: front.Model{Name: e.Host, Host: e.Host, Base: e.Base}, variable: e.Variable}
		for _, c := range connectors {
			if !hasCredentialFor(c, e.Host) {
				continue
			}
			for _, p := range c.Placeholders {
				key := random() + "-" + p.Value
				m.Keys, m.keys = append(m.Keys, key), append(m.keys, p.Env+"="+key)
			}
		}
		if len(m.Keys) > 0 {
			all = append(all, m)
		}
	}
	return all
}

// hasCredentialFor reports whether an operation of a connector sends its credential to a host.
func hasCredentialFor(c *spec.Connector, host string) bool {
	for _, t := range c.Tools {
		for _, op := range t.Operations {
			covers := func(h spec.HostPattern) bool { return h.Covers(host, 443) }
			if op.Injection != nil && slices.ContainsFunc(op.Hosts, covers) {
				return true
			}
		}
	}
	return false
}

// served returns what the listener serves.
func (ms models) served() []front.Model {
	all := make([]front.Model, 0, len(ms))
	for _, m := range ms {
		all = append(all, m.Model)
	}
	return all
}

// environment returns the variables that lead a command to the listener at a URL. An endpoint that its user has chosen
// stays, and a line says so.
func (ms models) environment(at string, environ []string, infof func(format string, args ...any)) []string {
	var env []string
	for _, m := range ms {
		chosen := func(pair string) bool {
			value, is := strings.CutPrefix(pair, m.variable+"=")
			return is && value != ""
		}
		if slices.ContainsFunc(environ, chosen) {
			infof("aileron: your %s stays, so requests to it take the proxy", m.variable)
			continue
		}
		env = append(append(env, m.variable+"="+at+m.Path()), m.keys...)
	}
	return env
}
