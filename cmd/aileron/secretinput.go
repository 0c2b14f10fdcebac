package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/vault"
)

// secretOptions are the ways in which a secret comes in. There is none on the
// command line: arguments can be read by everyone on the host.
type secretOptions struct {
	file           string
	stdin          bool
	username       string
	passphraseFile string
}

func (o *secretOptions) register(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&o.file, "secret-file", "", "file that holds the secret alone (- for standard input)")
	f.BoolVar(&o.stdin, "secret-stdin", false, "read the secret from standard input")
	f.StringVar(&o.username, "username", "", "user name, for kind basic")
	f.StringVar(&o.passphraseFile, "passphrase-file", "", "file that holds the vault's passphrase")
}

func (o *secretOptions) check() error {
	if o.file != "" && o.stdin {
		return usagef("--secret-file and --secret-stdin exclude each other")
	}
	if o.file == "-" {
		o.file, o.stdin = "", true
	}
	return nil
}

// given reports a secret that nobody has to be asked for.
func (o *secretOptions) given() bool { return o.file != "" || o.stdin }

// read gets the secret.
func (o *secretOptions) read(ctx context.Context, a *app, what string) (vault.Secret, error) {
	var raw []byte
	var err error
	switch {
	case o.file != "":
		if raw, err = a.readSecretFile(o.file, vault.MaxSecret); err != nil {
			return vault.Secret{}, hint.New(fmt.Errorf("read the secret: %w", err), "name a readable file that holds the secret alone")
		}
	case o.stdin:
		if raw, err = io.ReadAll(io.LimitReader(a.stdin, vault.MaxSecret+3)); err != nil {
			return vault.Secret{}, fmt.Errorf("read the secret: %w", err)
		}
	case a.interactive():
		if raw, err = a.promptSecret(ctx, what, false); err != nil {
			return vault.Secret{}, err
		}
	default:
		return vault.Secret{}, hint.New(errors.New("read the secret: there is none, and nobody to ask"), "pass --secret-file or --secret-stdin")
	}
	s, err := vault.NewSecret(raw)
	if err != nil {
		return s, hint.New(err, "give the secret alone, in one line")
	}
	return s, nil
}

// readSecretFile reads a file, or a pipe of the shell's, of at most that many
// bytes and a line end. It warns of one that others can read.
func (a *app) readSecretFile(path string, most int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	keepFromChildren(path)
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return nil, fmt.Errorf("%s is a directory", path)
	}
	if info.Mode().IsRegular() && info.Mode().Perm()&0o077 != 0 {
		a.sayf("aileron: warning: others on this host can read %[1]s; chmod 600 %[1]s", path)
	}
	raw, err := io.ReadAll(io.LimitReader(f, most+3))
	if err != nil {
		return nil, err
	}
	if int64(len(raw)) > most+2 {
		return nil, fmt.Errorf("%s has more than %d bytes", path, most)
	}
	return raw, nil
}
