// Package bindings makes, replaces and removes the bindings of credentials to connectors. Open [Setup.Bind] first;
// target.go finds what is to be bound, secret.go and secretsfile.go read the secrets.
package bindings

import (
	"context"
	"errors"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/internal/changes"
	"github.com/ALRubinger/aileron/internal/failure"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/internal/unlock"
	"github.com/ALRubinger/aileron/spec"
	"github.com/ALRubinger/aileron/vault"
)

// Setup is what is to be bound: one secret to several connectors, or a secret of a file to each.
type Setup struct {
	SecretSource
	Connectors []string
	List       string // file of CONNECTOR=SECRET
	Secrets    []Line // its content; nil: it has not been read
	Identity   string
}

// Bind makes the bindings, and calls made with the name of each.
func (s *Setup) Bind(ctx context.Context, u *unlock.Unlocker, made func(name string)) ([]vault.Binding, error) {
	v, err := u.VaultOf()
	if err != nil {
		return nil, err
	}
	targets, err := s.targets(u, v)
	if err != nil || len(targets) == 0 {
		return []vault.Binding{}, err
	}
	if err := s.readSecret(ctx, u, targets); err != nil {
		return nil, err
	}
	if !v.Initialised() {
		_, err = u.CreateVault(ctx, v, s.PassphraseFile)
	} else {
		v, err = u.SealingVault(ctx, s.PassphraseFile)
	}
	if err != nil {
		return nil, err
	}
	bound := []vault.Binding{}
	err = BindAll(ctx, u.Recorder, v, targets, func(name string) error {
		made(name)
		b, err := v.Binding(name)
		bound = append(bound, b)
		return err
	})
	return bound, err
}

// BindAll binds targets in their order, and calls made with the name of each. It stops at the first that fails.
func BindAll(ctx context.Context, r changes.Recorder, v *vault.Vault, targets []Target, made func(name string) error,
) (err error) {
	batch := r.NewBatch()
	defer func() { err = batch.Close(err) }()
	for _, t := range targets {
		about := audit.Row{ConnectorFQN: t.Connector, ConnectorVersion: t.Version, Binding: t.Name}
		act := func() error { return v.Bind(t.Binding, t.Secret) }
		err := batch.Enact(ctx, changes.Change{What: audit.ChangeBindingSetup, About: about}, act)
		if errors.Is(err, vault.ErrExists) {
			return boundAlready(err, t.Name)
		} else if err != nil {
			return err
		}
		if err := made(t.Name); err != nil {
			return err
		}
	}
	return nil
}

// Rebind replaces the secret of a binding.
func Rebind(ctx context.Context, u *unlock.Unlocker, name string, from SecretSource) error {
	v, err := u.VaultOf()
	if err != nil {
		return err
	}
	b, err := v.Binding(name)
	if err != nil {
		return Hint(err)
	}
	if from.Username != "" && !spec.Kind(b.Kind).HasUsername() {
		return failure.Usagef("--username is for credentials of kind basic; %s is %s", name, b.Kind)
	}
	secret, err := from.Read(ctx, u, b.Kind+" secret for "+b.Connector)
	if err != nil {
		return err
	}
	if v, err = u.SealingVault(ctx, from.PassphraseFile); err != nil {
		return err
	}
	before, err := v.Digest(name)
	if err != nil {
		return err
	}
	about := audit.Row{ConnectorFQN: b.Connector, Binding: name}
	c := changes.Change{What: audit.ChangeBindingRebind, About: about, Before: before}
	return Hint(u.Enact(ctx, c, func() error { return v.Rebind(name, from.Username, secret) }))
}

// Revoke removes a binding, after confirm has not returned an error.
func Revoke(ctx context.Context, u *unlock.Unlocker, name string, confirm func() error) error {
	v, err := u.VaultOf()
	if err != nil {
		return err
	}
	b, err := v.Binding(name) // a broken one is removed too
	if errors.Is(err, vault.ErrNotBound) || errors.Is(err, vault.ErrBadName) {
		return Hint(err)
	}
	if err := confirm(); err != nil {
		return err
	}
	c := changes.Change{What: audit.ChangeBindingRevoke, About: audit.Row{ConnectorFQN: b.Connector, Binding: name}}
	return Hint(u.Enact(ctx, c, func() error { return v.Revoke(name) }))
}

// Hint adds a hint to the error of a name for which there is no binding.
func Hint(err error) error {
	switch {
	case errors.Is(err, vault.ErrNotInitialised):
		return hint.New(err, "create it and bind a credential with: aileron binding setup CONNECTOR")
	case errors.Is(err, vault.ErrNotBound), errors.Is(err, vault.ErrBadName):
		return hint.New(err, "see what is bound with: aileron binding list")
	}
	return err
}
