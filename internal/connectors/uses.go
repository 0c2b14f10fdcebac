package connectors

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/internal/home"
	"github.com/ALRubinger/aileron/sandbox/agents"
	"github.com/ALRubinger/aileron/spec"
	"github.com/ALRubinger/aileron/spec/catalog"
	"github.com/ALRubinger/aileron/vault"
)

func IsBound(c *spec.Connector, bound []vault.Binding) bool {
	need := c.Credential()
	return need != nil && slices.ContainsFunc(bound, func(b vault.Binding) bool {
		return b.Connector == string(c.FQN) && spec.Kind(b.Kind) == need.Kind
	})
}

// IsModel reports whether a connector is, by the last part of its name, for a model provider of the agent.
func IsModel(c *spec.Connector, agent agents.Agent) bool {
	return slices.ContainsFunc(agent.Connectors, func(name string) bool {
		service := strings.TrimPrefix(c.FQN.Service(), catalog.ServicePrefix)
		return service == name // not a suffix: local-openai is another provider than openai
	})
}

// IsOwnModel returns what reports whether a connector is the catalogue's for a model provider of the agent: it has the
// full name, and no other hosts. A name alone is anyone's choice, so what IsModel reports exempts from nothing.
func IsOwnModel(agent agents.Agent) func(*spec.Connector) bool {
	hosts := map[spec.FQN][]spec.HostPattern{}
	for _, name := range agent.Connectors {
		if entry, ok := catalog.Find(name); ok {
			hosts[entry.Connector.FQN] = entry.Connector.Manifest.Hosts
		}
	}
	return func(c *spec.Connector) bool {
		known, ok := hosts[c.FQN]
		return ok && !slices.ContainsFunc(c.Manifest.Hosts,
			func(h spec.HostPattern) bool { return !slices.Contains(known, h) })
	}
}

// ModelAdvice returns a warning about an agent without a connector for its model provider among those in force: its
// requests would be denied. It is "" where there is one. by is what narrowed the session to those.
func ModelAdvice(agent agents.Agent, inForce []*spec.Connector, installed func() []*spec.Connector, by string) string {
	of := func(c *spec.Connector) bool { return IsModel(c, agent) }
	if slices.ContainsFunc(inForce, of) {
		return ""
	}
	all := installed()
	at := slices.IndexFunc(all, of)
	if at < 0 {
		return fmt.Sprintf("no connector for a model provider of %[1]s (%[2]s) is installed; set it up with: aileron setup "+
			"%[1]s", agent.Name, strings.Join(agent.Connectors, ", "))
	}
	return fmt.Sprintf("%s leaves out the connector for %s's model provider, and its requests will be denied; add %s",
		by, agent.Name, all[at].FQN)
}

// ToMatch returns the installed connectors, or those with the names of among: installed, else of the
// catalogue.
func ToMatch(d *home.Dir, among []string) ([]*spec.Connector, error) {
	s, err := d.OpenStore()
	if err != nil {
		return nil, err
	}
	installed, broken := s.Current()
	if len(broken) > 0 {
		return nil, hint.New(fmt.Errorf("verify the installed connectors: %w", errors.Join(broken...)),
			"install the connector again, or remove it with: aileron connector remove FQN")
	}
	if len(among) == 0 {
		return installed, nil
	}
	var chosen []*spec.Connector
	for _, name := range among {
		fqn, err := NewNames(d).Resolve(name)
		if err != nil {
			return nil, err
		}
		c := ByName(installed)[string(fqn)]
		if entry, ok := catalog.Find(string(fqn)); ok && c == nil {
			c = entry.Connector
		}
		if c == nil {
			return nil, NotInstalled(name, fqn)
		}
		chosen = append(chosen, c)
	}
	return chosen, nil
}

// ByName returns connectors by their names.
func ByName(connectors []*spec.Connector) map[string]*spec.Connector {
	named := make(map[string]*spec.Connector, len(connectors))
	for _, c := range connectors {
		named[string(c.FQN)] = c
	}
	return named
}
