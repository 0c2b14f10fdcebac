package main

import (
	"context"
	"os"
	"slices"
	"strings"

	"github.com/ALRubinger/aileron/sandbox/agents"
	"github.com/ALRubinger/aileron/spec"
	"github.com/ALRubinger/aileron/spec/catalog"
	"github.com/ALRubinger/aileron/vault"
)

// unlockFirst unlocks the vault for a session that is going to need it, before an image is built for minutes: a person
// types the passphrase and may walk away, and a wrong one is found at once. A passphrase that comes through a pipe is
// left to the session, which can be stopped while it waits.
func (a *app) unlockFirst(ctx context.Context, opts *sessionOptions) (err error) {
	if info, err := os.Stat(opts.passphraseFile); opts.passphraseFile != "" && (err != nil || !info.Mode().IsRegular()) {
		return nil //nolint:nilerr // the session reports it
	}
	return a.unlockBound(ctx, opts)
}

// unlockBound unlocks the vault if a session would use a binding.
func (a *app) unlockBound(ctx context.Context, opts *sessionOptions) error {
	v, err := a.vaultOf()
	if err != nil {
		return err
	}
	used, _, err := opts.used(a)
	if err != nil {
		return err
	}
	if opts.opened != nil || v.LockedForAll() || !a.anyBound(v, used) {
		return nil
	}
	opts.opened, err = a.openVault(ctx, opts.passphraseFile)
	return err
}

// anyBound reports whether a session that uses these connectors, nil for all, would use a binding. What cannot be read
// is left to the session to report.
func (a *app) anyBound(v *vault.Vault, used []spec.FQN) bool {
	bound, _ := v.Bindings()
	var names []spec.FQN
	for _, b := range bound {
		names = append(names, spec.FQN(b.Connector))
	}
	s, err := a.openStore()
	if err != nil {
		return false
	}
	for _, c := range s.CurrentOf(names) {
		if (used == nil || slices.Contains(used, c.FQN)) && isBound(c, bound) {
			return true
		}
	}
	return false
}

// currentConnectors returns the installed connectors that can be read.
func (a *app) currentConnectors() []*spec.Connector {
	s, err := a.openStore()
	if err != nil {
		return nil
	}
	connectors, _ := s.Current()
	return connectors
}

func isBound(c *spec.Connector, bound []vault.Binding) bool {
	need := c.Credential()
	return need != nil && slices.ContainsFunc(bound, func(b vault.Binding) bool {
		return b.Connector == string(c.FQN) && spec.Kind(b.Kind) == need.Kind
	})
}

// isModel reports whether a connector is for a model provider of the agent.
func isModel(c *spec.Connector, agent agents.Agent) bool {
	return slices.ContainsFunc(agent.Connectors, func(name string) bool {
		service := strings.TrimPrefix(c.FQN.Service(), catalog.ServicePrefix)
		return service == name // not a suffix: local-openai is another provider than openai
	})
}

// offer asks a person who launches an agent for what is missing: a key for its model, and the credentials of other
// connectors that have none. What is declined is not offered again. Without a terminal, the warnings of the session
// name the commands.
func (a *app) offer(ctx context.Context, opts *sandboxOptions, agent agents.Agent) error {
	if !a.interactive() || !a.messagesOnTerminal() {
		return nil
	}
	home, err := a.Home()
	if err != nil {
		return err
	}
	used, _, err := opts.used(a)
	if err != nil {
		return err
	}
	bound, _ := a.vaultAt(home).Bindings()
	connectors := a.currentConnectors()
	ready := slices.ContainsFunc(connectors,
		func(c *spec.Connector) bool { return isModel(c, agent) && isBound(c, bound) })
	// What setup would install is left out of a session that is narrowed to others: adviseModel has the words.
	narrowed := used != nil && !slices.ContainsFunc(used,
		func(fqn spec.FQN) bool { return isModel(&spec.Connector{FQN: fqn}, agent) })
	if !ready && !narrowed {
		yes, err := a.offerOnce(ctx, home, "key of "+agent.Name, agent.Name+" has no key for its model; set it up now?", true,
			"aileron setup "+agent.Name)
		if err != nil {
			return err
		}
		if yes {
			s := setupOptions{
				agent: agent.Name, engine: opts.sandbox, passphraseFile: opts.passphraseFile, launching: true,
			}
			if err := s.run(ctx, a); err != nil {
				return err
			}
			opts.opened = s.created // its passphrase was typed just now
			return nil
		}
	}
	for _, c := range connectors {
		if used != nil && !slices.Contains(used, c.FQN) {
			continue
		}
		if c.Credential() == nil || isBound(c, bound) || !ready && isModel(c, agent) {
			continue
		}
		yes, err := a.offerOnce(ctx, home, "credential of "+string(c.FQN)+" "+c.Hash,
			string(c.FQN)+" has no credential; bind one now?", false, "aileron binding setup "+string(c.FQN))
		if err != nil {
			return err
		}
		if !yes {
			continue
		}
		b := bindingSetupOptions{fqns: []string{string(c.FQN)}, identity: "default"}
		b.passphraseFile = opts.passphraseFile
		if _, err := b.bind(ctx, a); err != nil {
			return err
		}
	}
	return nil
}
