package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/spec"
	"github.com/ALRubinger/aileron/spec/store"
	"github.com/ALRubinger/aileron/vault"
)

// bindingTarget is a binding to be made.
type bindingTarget struct {
	vault.Binding
	version string // of its connector
	secret  vault.Secret
}

// connectors returns the installed connectors of those names, which it reads once.
func (a *app) connectors(fqns []spec.FQN) ([]*spec.Connector, error) {
	s, err := a.openStore()
	if err != nil {
		return nil, err
	}
	current, faults := s.Current()
	installed := byName(current)
	var found []*spec.Connector
	for _, fqn := range fqns {
		c := installed[string(fqn)]
		switch {
		case c == nil && len(faults) > 0:
			return nil, store.Hint(fmt.Errorf("find the connector %s: %w", fqn, errors.Join(faults...)))
		case c == nil:
			return nil, notInstalled(string(fqn), fqn)
		}
		found = append(found, c)
	}
	return found, nil
}

// targets returns the bindings that the flags ask for, with the secrets of --secrets-file. All are valid and new.
func (o *bindingSetupOptions) targets(a *app, v *vault.Vault) ([]bindingTarget, error) {
	connectors, err := o.connectors(a)
	if err != nil {
		return nil, err
	}
	names, err := v.Names()
	if err != nil {
		return nil, err
	}
	var all []bindingTarget
	for i, c := range connectors {
		t := bindingTarget{version: c.Version}
		username := o.username
		if o.list != "" {
			if username, t.secret, err = o.secrets[i].split(c); err != nil {
				return nil, err
			}
		}
		if err := o.validate(a, c, username); err != nil {
			return nil, err
		}
		if t.Binding, err = o.binding(a, v, names, c, username); err != nil {
			return nil, err
		}
		all = append(all, t)
	}
	return all, nil
}

// connectors returns the connectors that the flags name, in the order of secrets if there is --secrets-file.
func (o *bindingSetupOptions) connectors(a *app) (found []*spec.Connector, err error) {
	if o.list != "" {
		if o.secrets == nil {
			if o.secrets, err = a.readSecrets(o.list); err != nil {
				return nil, err
			}
		}
		return a.namedBy(o.secrets)
	}
	var fqns []spec.FQN
	names := a.connectorNames()
	for i, name := range o.fqns {
		fqn, err := names.resolve(name)
		if err != nil && len(o.fqns) > 1 && !names.isNear(name) {
			// It may be a secret in the wrong place.
			return nil, usagef("argument %d of binding setup is not the name of a connector", i+1)
		} else if err != nil {
			return nil, err
		}
		if slices.Contains(fqns, fqn) {
			return nil, usagef("%s is named twice", fqn)
		}
		fqns = append(fqns, fqn)
	}
	return a.connectors(fqns)
}

// namedBy returns the installed connectors that lines name. Errors name the line: what stands for a name may
// contain the secret, after another character than "=".
func (a *app) namedBy(lines []secretLine) (found []*spec.Connector, err error) {
	seen := map[string]int{}
	names := a.connectorNames()
	lines = slices.Clone(lines)
	for i, l := range lines {
		if isShortName(l.fqn) {
			if fqn, err := names.resolve(l.fqn); err == nil {
				l.fqn = string(fqn)
				lines[i] = l
			} else if names.isKnown(l.fqn) {
				return nil, fmt.Errorf("read the secrets: line %d: %w", l.n, err)
			}
		}
		if first := seen[l.fqn]; first > 0 {
			return nil, hint.New(fmt.Errorf("read the secrets: lines %d and %d name one connector", first, l.n),
				"remove one of them, or bind it with another --identity")
		}
		seen[l.fqn] = l.n
	}
	s, err := a.openStore()
	if err != nil {
		return nil, err
	}
	current, faults := s.Current()
	installed := byName(current)
	for _, l := range lines {
		c := installed[l.fqn]
		switch {
		case c == nil && len(faults) > 0:
			return nil, store.Hint(fmt.Errorf("read the secrets: line %d: find the connector: %w", l.n, errors.Join(faults...)))
		case c == nil:
			return nil, hint.New(fmt.Errorf("read the secrets: line %d: find the connector: %w", l.n, store.ErrNotInstalled),
				"see what is installed with: aileron connector list; a line is CONNECTOR=SECRET")
		}
		found = append(found, c)
	}
	return found, nil
}

// byName returns connectors by their names.
func byName(connectors []*spec.Connector) map[string]*spec.Connector {
	named := make(map[string]*spec.Connector, len(connectors))
	for _, c := range connectors {
		named[string(c.FQN)] = c
	}
	return named
}

// readSecret reads the secret that all of targets share, unless --secrets-file has one for each.
func (o *bindingSetupOptions) readSecret(ctx context.Context, a *app, targets []bindingTarget) error {
	if o.list != "" {
		return nil
	}
	what := targets[0].Kind + " secret for " + targets[0].Connector
	if len(targets) > 1 {
		what = fmt.Sprintf("secret for %d connectors", len(targets))
	}
	secret, err := o.read(ctx, a, what)
	for i := range targets {
		targets[i].secret = secret
	}
	return err
}

// validate returns an error unless the flags fit the credential that the connector declares.
func (o *bindingSetupOptions) validate(a *app, c *spec.Connector, username string) error {
	need := c.Credential()
	given := o.given() || o.list != ""
	switch {
	case need == nil:
		return fmt.Errorf("bind a credential to %s: it needs none", c.FQN)
	case need.Kind.HasUsername() && username == "" && (given || !a.interactive()):
		return usagef("a %s credential needs --username", need.Kind)
	case !need.Kind.HasUsername() && username != "":
		return usagef("--username is for credentials of kind basic; %s needs %s", c.FQN, need.Kind)
	case need.Kind.NeedsLogin() && !given:
		return hint.New(fmt.Errorf("bind an %s credential to %s: this release opens no browser", need.Kind, c.FQN),
			"give an access token with --secret-file or --secret-stdin")
	}
	return nil
}

// binding returns a new binding for the connector. It asks for the username where the kind has one.
func (o *bindingSetupOptions) binding(a *app, v *vault.Vault, names *vault.Names, c *spec.Connector, username string,
) (vault.Binding, error) {
	b := vault.Binding{
		Kind: string(c.Credential().Kind), Connector: string(c.FQN), Identity: o.identity, Username: username,
	}
	var err error
	if b.Name, err = names.Of(b.Kind, b.Connector, o.identity); errors.Is(err, vault.ErrBadName) {
		return b, usageError{err}
	} else if err != nil {
		return b, err
	}
	if _, err := v.Binding(b.Name); err == nil {
		return b, boundAlready(fmt.Errorf("bind %s: it is already bound", b.Name), b.Name)
	}
	if spec.Kind(b.Kind).HasUsername() && b.Username == "" {
		if b.Username, err = a.promptLine("user name for " + b.Connector + ":"); err != nil {
			return b, err
		}
	}
	if err := b.Check(); err != nil {
		return b, usageError{err}
	}
	return b, nil
}

func boundAlready(err error, name string) error {
	return hint.New(err, "replace its secret with: aileron binding rebind %s", name)
}
