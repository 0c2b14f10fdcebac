package cli

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/internal/failure"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/vault"
)

// SecretOptions are the flags of the commands that take a secret. None holds the secret itself: everyone on the host
// can read the arguments of a process.
type SecretOptions struct {
	file           string
	stdin          bool
	Username       string
	PassphraseFile string
}

func (o *SecretOptions) Register(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&o.file, "secret-file", "", "file that holds only the secret (- for standard input)")
	f.BoolVar(&o.stdin, "secret-stdin", false, "read the secret from standard input")
	f.StringVar(&o.Username, "username", "", "user name, for kind basic")
	PassphraseFlag(cmd, &o.PassphraseFile)
}

func (o *SecretOptions) Check() error {
	if o.file != "" && o.stdin {
		return failure.Usagef("--secret-file and --secret-stdin exclude each other")
	}
	if o.file == "-" {
		o.file, o.stdin = "", true
	}
	return nil
}

// Given reports whether a flag has the secret, so that no prompt is needed.
func (o *SecretOptions) Given() bool { return o.file != "" || o.stdin }

// Read returns the secret, from a prompt for what if no flag has it.
func (o *SecretOptions) Read(ctx context.Context, a *App, what string) (vault.Secret, error) {
	var raw []byte
	var err error
	switch {
	case o.file != "":
		if raw, err = a.ReadSecretFile(o.file, vault.MaxSecret); err != nil {
			return vault.Secret{}, hint.New(fmt.Errorf("read the secret: %w", err),
				"name a readable file that holds only the secret")
		}
	case o.stdin:
		if raw, err = io.ReadAll(io.LimitReader(a.Stdin, vault.MaxSecret+3)); err != nil {
			return vault.Secret{}, fmt.Errorf("read the secret: %w", err)
		}
	case a.Interactive():
		if raw, err = a.PromptSecret(ctx, what, false); err != nil {
			return vault.Secret{}, err
		}
	default:
		return vault.Secret{}, hint.New(errors.New("read the secret: none was given, and there is no terminal to ask on"),
			"pass --secret-file or --secret-stdin")
	}
	s, err := vault.NewSecret(raw)
	if err != nil {
		return s, hint.New(err, "give only the secret, in one line")
	}
	return s, nil
}
