package bindings

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/ALRubinger/aileron/internal/connectors"
	"github.com/ALRubinger/aileron/internal/failure"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/internal/unlock"
	"github.com/ALRubinger/aileron/spec"
	"github.com/ALRubinger/aileron/spec/store"
	"github.com/ALRubinger/aileron/vault"
)

// Target is a binding to be made.
type Target struct {
	vault.Binding
	Version string // of its connector
	Secret  vault.Secret
	Grant   vault.Secret // of a login, or the command that prints the secret

	login *spec.Connector // a person logs in for it; nil: the secret is given
}

// findInstalled returns the installed connectors of those names, of which it reads the store once. missing returns the
// error about one that is not there, with why connectors cannot be read, nil if all can.
func findInstalled(u *unlock.Unlocker, fqns []string, missing func(i int, faults error) error,
) (found []*spec.Connector, err error) {
	s, err := u.OpenStore()
	if err != nil {
		return nil, err
	}
	current, faults := s.Current()
	installed := connectors.ByName(current)
	for i, fqn := range fqns {
		c := installed[fqn]
		if c == nil {
			return nil, missing(i, errors.Join(faults...))
		}
		found = append(found, c)
	}
	return found, nil
}

// targets returns the bindings that the flags ask for, with the secrets of --secrets-file. All are valid and new.
func (s *Setup) targets(u *unlock.Unlocker, v *vault.Vault) ([]Target, error) {
	connectors, err := s.connectors(u)
	if err != nil {
		return nil, err
	}
	names, err := v.Names()
	if err != nil {
		return nil, err
	}
	var all []Target
	for i, c := range connectors {
		t := Target{Version: c.Version}
		if need := c.Credential(); need != nil && need.OAuth2 != nil && !s.SecretSource.Given() && s.List == "" {
			t.login = c
		}
		username := s.Username
		if s.List != "" {
			if username, t.Secret, err = s.Secrets[i].split(c); err != nil {
				return nil, err
			}
		}
		if err := s.validate(u, c, username); err != nil {
			return nil, err
		}
		if t.Binding, err = s.binding(u, v, names, c, username); err != nil {
			return nil, err
		}
		all = append(all, t)
	}
	return all, nil
}

// connectors returns the connectors that are named, in the order of secrets if there is --secrets-file.
func (s *Setup) connectors(u *unlock.Unlocker) (found []*spec.Connector, err error) {
	if s.List != "" {
		if s.Secrets == nil {
			if s.Secrets, err = ReadSecrets(u, s.List); err != nil {
				return nil, err
			}
		}
		return namedBy(u, s.Secrets)
	}
	var fqns []string
	names := connectors.NewNames(u.Dir)
	for i, name := range s.Connectors {
		fqn, err := names.Resolve(name)
		if err != nil && len(s.Connectors) > 1 && !names.IsNear(name) {
			// It may be a secret in the wrong place.
			return nil, failure.Usagef("argument %d of binding setup is not the name of a connector", i+1)
		} else if err != nil {
			return nil, err
		}
		if slices.Contains(fqns, string(fqn)) {
			return nil, failure.Usagef("%s is named twice", fqn)
		}
		fqns = append(fqns, string(fqn))
	}
	return findInstalled(u, fqns, func(i int, faults error) error {
		if faults != nil {
			return store.Hint(fmt.Errorf("find the connector %s: %w", fqns[i], faults))
		}
		return connectors.NotInstalled(fqns[i], spec.FQN(fqns[i]))
	})
}

// namedBy returns the installed connectors that lines name. Errors name the line: what stands for a name may
// contain the secret, after another character than "=".
func namedBy(u *unlock.Unlocker, lines []Line) (found []*spec.Connector, err error) {
	seen := map[string]int{}
	names := connectors.NewNames(u.Dir)
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
	fqns := make([]string, len(lines))
	for i, l := range lines {
		fqns[i] = l.fqn
	}
	return findInstalled(u, fqns, func(i int, faults error) error {
		if faults != nil {
			return store.Hint(fmt.Errorf("read the secrets: line %d: find the connector: %w", lines[i].n, faults))
		}
		return hint.New(fmt.Errorf("read the secrets: line %d: find the connector: %w", lines[i].n, store.ErrNotInstalled),
			"see what is installed with: aileron connector list; a line is CONNECTOR=SECRET")
	})
}

// readSecret reads the secret that all of targets share, unless --secrets-file has one for each.
func (s *Setup) readSecret(ctx context.Context, u *unlock.Unlocker, targets []Target) error {
	var need []*Target
	for i := range targets {
		if targets[i].login == nil {
			need = append(need, &targets[i])
		}
	}
	if s.List != "" || len(need) == 0 {
		return nil
	}
	what := need[0].Kind + " secret for " + need[0].Connector
	if len(need) > 1 {
		what = fmt.Sprintf("secret for %d connectors", len(need))
	}
	c, err := s.SecretSource.Credential(ctx, u, what)
	for _, t := range need {
		t.Secret, t.Grant, t.Renewal = c.Secret, c.Grant, s.SecretSource.Renewal()
	}
	return err
}

// validate returns an error unless the flags fit the credential that the connector declares.
func (s *Setup) validate(u *unlock.Unlocker, c *spec.Connector, username string) error {
	need := c.Credential()
	given := s.SecretSource.Given() || s.List != ""
	switch {
	case need == nil:
		return fmt.Errorf("bind a credential to %s: it needs none", c.FQN)
	case need.Kind.HasUsername() && username == "" && (given || !u.Interactive()):
		return failure.Usagef("a %s credential needs --username", need.Kind)
	case !need.Kind.HasUsername() && username != "":
		return failure.Usagef("--username is for credentials of kind basic; %s needs %s", c.FQN, need.Kind)
	case need.Kind.NeedsLogin() && need.OAuth2 == nil && !given:
		return hint.New(fmt.Errorf("bind an %s credential to %s: the connector does not say where to log in",
			need.Kind, c.FQN), noLoginHint)
	case s.Login.Given() && (need.OAuth2 == nil || given):
		return failure.Usagef("--client-id and --client-secret-file are for a login, and the credential of %s is given, "+
			"or is of kind %s", c.FQN, need.Kind)
	}
	return nil
}

// binding returns a new binding for the connector. It asks for the username where the kind has one.
func (s *Setup) binding(u *unlock.Unlocker, v *vault.Vault, names *vault.Names, c *spec.Connector,
	username string,
) (vault.Binding, error) {
	b := vault.Binding{
		Kind: string(c.Credential().Kind), Connector: string(c.FQN), Identity: s.Identity, Username: username,
	}
	var err error
	if b.Name, err = names.Of(b.Kind, b.Connector, s.Identity); errors.Is(err, vault.ErrBadName) {
		return b, failure.Usage(err)
	} else if err != nil {
		return b, err
	}
	if _, err := v.Binding(b.Name); err == nil {
		return b, boundAlready(fmt.Errorf("bind %s: it is already bound", b.Name), b.Name)
	}
	if spec.Kind(b.Kind).HasUsername() && b.Username == "" {
		if b.Username, err = u.PromptLine("user name for " + b.Connector + ":"); err != nil {
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
