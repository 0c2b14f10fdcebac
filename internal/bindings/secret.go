package bindings

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/internal/unlock"
	"github.com/ALRubinger/aileron/vault"
	"github.com/ALRubinger/aileron/vault/command"
)

// SecretSource is where a command finds a secret. It does not hold the secret itself: everyone on the host can read the
// arguments of a process.
type SecretSource struct {
	File           string // that holds only the secret; "": there is none
	Stdin          bool
	Exec           string // a shell's command line that prints the secret, each time that a session needs it
	Username       string
	PassphraseFile string
}

// Given reports whether it names where the secret is, so that no prompt is needed.
func (o *SecretSource) Given() bool { return o.File != "" || o.Stdin || o.Exec != "" }

// Credential returns what is to be sealed: the secret, or the command that prints it. The command is run once, so that
// one that does not work is found now.
func (o *SecretSource) Credential(
	ctx context.Context, u *unlock.Unlocker, what string,
) (c vault.Credential, err error) {
	if o.Exec == "" {
		c.Secret, err = o.Read(ctx, u, what)
		return c, err
	}
	line := command.Command{"/bin/sh", "-c", o.Exec}
	if _, err := line.Run(ctx, nil); err != nil {
		return c, hint.New(fmt.Errorf("read the secret: %w", err),
			`run the command yourself, in the directory /: it must print only the secret, or {"value": "…", "expires_at": "…"}`)
	}
	return line.Credential()
}

// Renewal returns the state of the renewal of a binding whose secret comes from o.
func (o *SecretSource) Renewal() string {
	if o.Exec != "" {
		return command.Renewal
	}
	return ""
}

// Read returns the secret, from a prompt for what if none is named.
func (o *SecretSource) Read(ctx context.Context, u *unlock.Unlocker, what string) (vault.Secret, error) {
	var raw []byte
	var err error
	switch {
	case o.File != "":
		if raw, err = u.ReadSecretFile(o.File, vault.MaxSecret); err != nil {
			return vault.Secret{}, hint.New(fmt.Errorf("read the secret: %w", err),
				"name a readable file that holds only the secret")
		}
	case o.Stdin:
		if raw, err = io.ReadAll(io.LimitReader(u.Stdin, vault.MaxSecret+3)); err != nil {
			return vault.Secret{}, fmt.Errorf("read the secret: %w", err)
		}
	case u.Interactive():
		if raw, err = u.PromptSecret(ctx, what, false); err != nil {
			return vault.Secret{}, err
		}
	default:
		return vault.Secret{}, hint.New(errors.New("read the secret: none was given, and there is no terminal to ask on"),
			"pass --secret-file or --secret-stdin, or --secret-exec")
	}
	s, err := vault.NewSecret(raw)
	if err != nil {
		return s, hint.New(err, "give only the secret, in one line")
	}
	return s, nil
}
