// Package bindings makes, replaces and removes the bindings of credentials to connectors. Open [Setup.Bind] first;
// target.go finds what is to be bound, secret.go and secretsfile.go read the secrets.
package bindings

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/internal/changes"
	"github.com/ALRubinger/aileron/internal/connectors"
	"github.com/ALRubinger/aileron/internal/failure"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/internal/unlock"
	"github.com/ALRubinger/aileron/spec"
	"github.com/ALRubinger/aileron/spec/store"
	"github.com/ALRubinger/aileron/vault"
	"github.com/ALRubinger/aileron/vault/oauth"
)

// Setup is what is to be bound: one secret to several connectors, or a secret of a file to each.
type Setup struct {
	SecretSource
	Login
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
	bind := func(targets []Target) error {
		return BindAll(ctx, u.Recorder, v, targets, func(name string) error {
			made(name)
			b, err := v.Binding(name)
			bound = append(bound, b)
			return err
		})
	}
	// Each login is kept before the next one, which may fail.
	given := slices.DeleteFunc(slices.Clone(targets), func(t Target) bool { return t.login != nil })
	if err := bind(given); err != nil {
		return bound, err
	}
	for _, t := range targets {
		if t.login == nil {
			continue
		}
		var c vault.Credential
		if t.Binding, c, err = s.run(ctx, u, t.login, t.Binding, nil); err != nil {
			return bound, err
		}
		t.Secret, t.Grant = c.Secret, c.Grant
		if err := bind([]Target{t}); err != nil {
			return bound, err
		}
	}
	return bound, nil
}

// BindAll binds targets in their order, and calls made with the name of each. It stops at the first that fails.
func BindAll(ctx context.Context, r changes.Recorder, v *vault.Vault, targets []Target, made func(name string) error,
) (err error) {
	batch := r.NewBatch()
	defer func() { err = batch.Close(err) }()
	for _, t := range targets {
		about := audit.Row{ConnectorFQN: t.Connector, ConnectorVersion: t.Version, Binding: t.Name}
		act := func() error { return v.BindLogin(t.Binding, vault.Credential{Secret: t.Secret, Grant: t.Grant}) }
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

// Rebind replaces the secret of a binding: by the one of from, or by a login if the binding comes from one.
func Rebind(ctx context.Context, u *unlock.Unlocker, name string, from SecretSource, in Login) error {
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
	if spec.Kind(b.Kind).NeedsLogin() && !from.Given() {
		return logInAgain(ctx, u, b, from.PassphraseFile, in)
	}
	if in.Given() {
		return failure.Usagef("--client-id and --client-secret-file are for a login, and the secret of %s is given", name)
	}
	c, err := from.Credential(ctx, u, b.Kind+" secret for "+b.Connector)
	if err != nil {
		return err
	}
	if v, err = u.SealingVault(ctx, from.PassphraseFile); err != nil {
		return err
	}
	b = vault.Binding{Name: name, Connector: b.Connector, Username: from.Username, Renewal: from.Renewal()}
	return replace(ctx, u, v, b, c)
}

// replace makes c the credential of an existing binding, and b's facts those of its login.
func replace(ctx context.Context, u *unlock.Unlocker, v *vault.Vault, b vault.Binding, c vault.Credential) error {
	before, err := v.Digest(b.Name)
	if err != nil {
		return err
	}
	about := audit.Row{ConnectorFQN: b.Connector, Binding: b.Name}
	change := changes.Change{What: audit.ChangeBindingRebind, About: about, Before: before}
	return Hint(u.Enact(ctx, change, func() error { return v.RebindLogin(b, c) }))
}

// noLoginHint is the hint for a connector of kind oauth2 that declares no login.
const noLoginHint = "update the connector, or give a token with --secret-file or --secret-stdin, which is not renewed"

// logInAgain replaces the login of a binding. Its client is that of the login before, unless in names another or the
// connector has one; to read that, the vault is unlocked.
func logInAgain(ctx context.Context, u *unlock.Unlocker, b vault.Binding, passphraseFile string, in Login) error {
	found, err := findInstalled(u, []string{b.Connector}, func(_ int, faults error) error {
		return store.Hint(cmp.Or(faults, connectors.NotInstalled(b.Connector, spec.FQN(b.Connector))))
	})
	if err != nil {
		return err
	}
	need := found[0].Credential()
	if need == nil || need.OAuth2 == nil {
		return hint.New(fmt.Errorf("log in for %s: the connector does not say where", b.Connector),
			noLoginHint)
	}
	var v *vault.Vault
	var before *oauth.Grant
	if need.OAuth2.ClientID == "" && in.ClientID == "" && b.Login != "" {
		if v, err = u.OpenVault(ctx, passphraseFile); err != nil {
			return err
		}
		if c, err := v.Credential(b.Name); err == nil {
			if g, ok, err := oauth.Of(c); ok && err == nil {
				before = &g
			}
		}
	} else if v, err = u.SealingVault(ctx, passphraseFile); err != nil {
		return err
	}
	b, c, err := in.run(ctx, u, found[0], b, before)
	if err != nil {
		return err
	}
	return replace(ctx, u, v, b, c)
}

// revokeWait bounds the wait of a revocation for a session that renews the token: the binding is removed in any case.
const revokeWait = 10 * time.Second

// Revoke removes a binding, after confirm has not returned an error, and ends its login at the service, for which it
// opens the vault.
func Revoke(ctx context.Context, u *unlock.Unlocker, name, passphraseFile string, in Login, confirm func() error,
) error {
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
	var held vault.Credential
	var sealed error
	if b.Login != "" {
		var r *vault.Renewal
		if v, sealed = u.OpenVault(ctx, passphraseFile); sealed == nil {
			short, cancel := context.WithTimeout(ctx, revokeWait)
			defer cancel()
			if r, sealed = v.RenewBinding(short, name); sealed == nil { // no session replaces it meanwhile
				defer r.End()
				held = r.Credential
			} else if errors.Is(sealed, context.DeadlineExceeded) && ctx.Err() == nil {
				sealed = errors.New("a session is renewing its token, and does not end that")
			}
		} else if v, err = u.VaultOf(); err != nil {
			return err
		}
	}
	c := changes.Change{What: audit.ChangeBindingRevoke, About: audit.Row{ConnectorFQN: b.Connector, Binding: name}}
	err = Hint(u.Enact(ctx, c, func() error { return v.Revoke(name) }))
	if err == nil && b.Login != "" {
		in.endLogin(ctx, u, b, held, sealed)
	}
	return err
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
