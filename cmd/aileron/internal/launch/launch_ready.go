package launch

import (
	"context"
	"errors"
	"os"
	"slices"

	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
	"github.com/ALRubinger/aileron/cmd/aileron/internal/setup"
	"github.com/ALRubinger/aileron/internal/bindings"
	"github.com/ALRubinger/aileron/internal/connectors"
	"github.com/ALRubinger/aileron/internal/console"
	"github.com/ALRubinger/aileron/sandbox/agents"
	"github.com/ALRubinger/aileron/spec"
	"github.com/ALRubinger/aileron/vault"
)

// UnlockFirst unlocks the vault for a session that is going to need it, before an image is built for minutes: a person
// types the passphrase and may walk away, and a wrong one is found at once. A passphrase that comes through a pipe is
// left to the session, which can be stopped while it waits.
func UnlockFirst(ctx context.Context, a *cli.App, opts *cli.SessionOptions) (err error) {
	if info, err := os.Stat(opts.PassphraseFile); opts.PassphraseFile != "" && (err != nil || !info.Mode().IsRegular()) {
		return nil //nolint:nilerr // the session reports it
	}
	return unlockBound(ctx, a, opts)
}

// unlockBound unlocks the vault if a session would use a binding.
func unlockBound(ctx context.Context, a *cli.App, opts *cli.SessionOptions) error {
	v, err := a.VaultOf()
	if err != nil {
		return err
	}
	used, _, err := opts.Used(a.Dir)
	if err != nil {
		return err
	}
	if opts.Opened != nil || v.LockedForAll() || !anyBound(a, v, used) {
		return nil
	}
	opts.Opened, err = a.OpenVault(ctx, opts.PassphraseFile)
	return err
}

// anyBound reports whether a session that uses these connectors, nil for all, would use a binding. What cannot be read
// is left to the session to report.
func anyBound(a *cli.App, v *vault.Vault, used []spec.FQN) bool {
	bound, _ := v.Bindings()
	var names []spec.FQN
	for _, b := range bound {
		names = append(names, spec.FQN(b.Connector))
	}
	s, err := a.OpenStore()
	if err != nil {
		return false
	}
	for _, c := range s.CurrentOf(names) {
		if (used == nil || slices.Contains(used, c.FQN)) && connectors.IsBound(c, bound) {
			return true
		}
	}
	return false
}

// currentConnectors returns the installed connectors that can be read.
func currentConnectors(a *cli.App) []*spec.Connector {
	s, err := a.OpenStore()
	if err != nil {
		return nil
	}
	connectors, _ := s.Current()
	return connectors
}

// offer asks a person who launches an agent for what is missing: a key for its model, and the credentials of other
// connectors that have none. What is declined is not offered again. Without a terminal, the warnings of the session
// name the commands.
func offer(ctx context.Context, a *cli.App, opts *cli.SandboxOptions, agent agents.Agent) error {
	if !a.Interactive() || !a.MessagesOnTerminal() {
		return nil
	}
	home, err := a.Home()
	if err != nil {
		return err
	}
	used, _, err := opts.Used(a.Dir)
	if err != nil {
		return err
	}
	bound, _ := a.VaultAt(home).Bindings()
	current := currentConnectors(a)
	ready := slices.ContainsFunc(current,
		func(c *spec.Connector) bool { return connectors.IsModel(c, agent) && connectors.IsBound(c, bound) })
	// What setup would install is left out of a session that is narrowed to others: AdviseModel has the words.
	narrowed := used != nil && !slices.ContainsFunc(used,
		func(fqn spec.FQN) bool { return connectors.IsModel(&spec.Connector{FQN: fqn}, agent) })
	if !ready && !narrowed {
		yes, err := a.OfferOnce(ctx, home, "key of "+agent.Name, agent.Name+" has no key for its model; set it up now?", true,
			"aileron setup "+agent.Name)
		if err != nil {
			return err
		}
		if yes {
			s := setup.Options(a)
			s.Agent, s.Engine, s.PassphraseFile, s.Launching = agent.Name, opts.Engine, opts.PassphraseFile, true
			s.Login.Upstream = a.ReachServices(&opts.UpstreamOptions)
			if err := s.Run(ctx, &a.Unlocker); err != nil {
				return err
			}
			opts.Opened = s.Created // its passphrase was typed just now
			return nil
		}
	}
	for _, c := range current {
		if used != nil && !slices.Contains(used, c.FQN) {
			continue
		}
		if c.Credential() == nil || connectors.IsBound(c, bound) || !ready && connectors.IsModel(c, agent) {
			continue
		}
		question := string(c.FQN) + " has no credential; bind one now?"
		if c.Credential().OAuth2 != nil {
			question = string(c.FQN) + " has no login; log in now?"
		}
		yes, err := a.OfferOnce(ctx, home, "credential of "+string(c.FQN)+" "+c.Hash, question, false,
			"aileron binding setup "+string(c.FQN))
		if err != nil {
			return err
		}
		if !yes {
			continue
		}
		b := bindings.Setup{Connectors: []string{string(c.FQN)}, Identity: "default"}
		b.PassphraseFile = opts.PassphraseFile
		b.Upstream = a.ReachServices(&opts.UpstreamOptions)
		_, err = b.Bind(ctx, &a.Unlocker, func(name string) { a.Infof("aileron: bound %s", name) })
		if exit := (console.ExitError{}); errors.As(err, &exit) || ctx.Err() != nil {
			return err
		}
		if err != nil {
			a.Infof("aileron: %v; the launch goes on, and it can be bound later with: aileron binding setup %s", err, c.FQN)
		}
	}
	return nil
}
