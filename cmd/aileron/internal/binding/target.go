package binding

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
	"github.com/ALRubinger/aileron/internal/connectors"
	"github.com/ALRubinger/aileron/internal/failure"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/spec"
	"github.com/ALRubinger/aileron/spec/store"
	"github.com/ALRubinger/aileron/vault"
)

// BindingTarget is a binding to be made.
type BindingTarget struct {
	vault.Binding
	Version string // of its connector
	Secret  vault.Secret
}

// installedConnectors returns the installed connectors of those names, which it reads once.
func installedConnectors(a *cli.App, fqns []spec.FQN) ([]*spec.Connector, error) {
	s, err := a.OpenStore()
	if err != nil {
		return nil, err
	}
	current, faults := s.Current()
	installed := cli.ByName(current)
	var found []*spec.Connector
	for _, fqn := range fqns {
		c := installed[string(fqn)]
		switch {
		case c == nil && len(faults) > 0:
			return nil, store.Hint(fmt.Errorf("find the connector %s: %w", fqn, errors.Join(faults...)))
		case c == nil:
			return nil, connectors.NotInstalled(string(fqn), fqn)
		}
		found = append(found, c)
	}
	return found, nil
}

// targets returns the bindings that the flags ask for, with the secrets of --secrets-file. All are valid and new.
func (o *BindingSetupOptions) targets(a *cli.App, v *vault.Vault) ([]BindingTarget, error) {
	connectors, err := o.connectors(a)
	if err != nil {
		return nil, err
	}
	names, err := v.Names()
	if err != nil {
		return nil, err
	}
	var all []BindingTarget
	for i, c := range connectors {
		t := BindingTarget{Version: c.Version}
		username := o.Username
		if o.List != "" {
			if username, t.Secret, err = o.Secrets[i].split(c); err != nil {
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

// installedConnectors returns the connectors that the flags name, in the order of secrets if there is --secrets-file.
func (o *BindingSetupOptions) connectors(a *cli.App) (found []*spec.Connector, err error) {
	if o.List != "" {
		if o.Secrets == nil {
			if o.Secrets, err = ReadSecrets(a, o.List); err != nil {
				return nil, err
			}
		}
		return namedBy(a, o.Secrets)
	}
	var fqns []spec.FQN
	names := connectors.NewNames(a.Dir)
	for i, name := range o.Fqns {
		fqn, err := names.Resolve(name)
		if err != nil && len(o.Fqns) > 1 && !names.IsNear(name) {
			// It may be a secret in the wrong place.
			return nil, failure.Usagef("argument %d of binding setup is not the name of a connector", i+1)
		} else if err != nil {
			return nil, err
		}
		if slices.Contains(fqns, fqn) {
			return nil, failure.Usagef("%s is named twice", fqn)
		}
		fqns = append(fqns, fqn)
	}
	return installedConnectors(a, fqns)
}

// namedBy returns the installed connectors that lines name. Errors name the line: what stands for a name may
// contain the secret, after another character than "=".
func namedBy(a *cli.App, lines []secretLine) (found []*spec.Connector, err error) {
	seen := map[string]int{}
	names := connectors.NewNames(a.Dir)
	lines = slices.Clone(lines)
	for i, l := range lines {
		if connectors.IsShortName(l.fqn) {
			if fqn, err := names.Resolve(l.fqn); err == nil {
				l.fqn = string(fqn)
				lines[i] = l
			} else if names.IsKnown(l.fqn) {
				return nil, fmt.Errorf("read the secrets: line %d: %w", l.n, err)
			}
		}
		if first := seen[l.fqn]; first > 0 {
			return nil, hint.New(fmt.Errorf("read the secrets: lines %d and %d name one connector", first, l.n),
				"remove one of them, or bind it with another --identity")
		}
		seen[l.fqn] = l.n
	}
	s, err := a.OpenStore()
	if err != nil {
		return nil, err
	}
	current, faults := s.Current()
	installed := cli.ByName(current)
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

// readSecret reads the secret that all of targets share, unless --secrets-file has one for each.
func (o *BindingSetupOptions) readSecret(ctx context.Context, a *cli.App, targets []BindingTarget) error {
	if o.List != "" {
		return nil
	}
	what := targets[0].Kind + " secret for " + targets[0].Connector
	if len(targets) > 1 {
		what = fmt.Sprintf("secret for %d connectors", len(targets))
	}
	secret, err := o.Read(ctx, a, what)
	for i := range targets {
		targets[i].Secret = secret
	}
	return err
}

// validate returns an error unless the flags fit the credential that the connector declares.
func (o *BindingSetupOptions) validate(a *cli.App, c *spec.Connector, username string) error {
	need := c.Credential()
	given := o.Given() || o.List != ""
	switch {
	case need == nil:
		return fmt.Errorf("bind a credential to %s: it needs none", c.FQN)
	case need.Kind.HasUsername() && username == "" && (given || !a.Interactive()):
		return failure.Usagef("a %s credential needs --username", need.Kind)
	case !need.Kind.HasUsername() && username != "":
		return failure.Usagef("--username is for credentials of kind basic; %s needs %s", c.FQN, need.Kind)
	case need.Kind.NeedsLogin() && !given:
		return hint.New(fmt.Errorf("bind an %s credential to %s: this release opens no browser", need.Kind, c.FQN),
			"give an access token with --secret-file or --secret-stdin")
	}
	return nil
}

// binding returns a new binding for the connector. It asks for the username where the kind has one.
func (o *BindingSetupOptions) binding(a *cli.App, v *vault.Vault, names *vault.Names, c *spec.Connector,
	username string,
) (vault.Binding, error) {
	b := vault.Binding{
		Kind: string(c.Credential().Kind), Connector: string(c.FQN), Identity: o.Identity, Username: username,
	}
	var err error
	if b.Name, err = names.Of(b.Kind, b.Connector, o.Identity); errors.Is(err, vault.ErrBadName) {
		return b, failure.Usage(err)
	} else if err != nil {
		return b, err
	}
	if _, err := v.Binding(b.Name); err == nil {
		return b, boundAlready(fmt.Errorf("bind %s: it is already bound", b.Name), b.Name)
	}
	if spec.Kind(b.Kind).HasUsername() && b.Username == "" {
		if b.Username, err = a.PromptLine("user name for " + b.Connector + ":"); err != nil {
			return b, err
		}
	}
	if err := b.Check(); err != nil {
		return b, failure.Usage(err)
	}
	return b, nil
}

func boundAlready(err error, name string) error {
	return hint.New(err, "replace its secret with: aileron binding rebind %s", name)
}
