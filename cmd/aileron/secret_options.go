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

// secretOptions are the flags of the commands that take a secret. None holds the secret itself: everyone on the host
// can read the arguments of a process.
type secretOptions struct {
	file           string
	stdin          bool
	username       string
	passphraseFile string
}

func (o *secretOptions) register(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&o.file, "secret-file", "", "file that holds only the secret (- for standard input)")
	f.BoolVar(&o.stdin, "secret-stdin", false, "read the secret from standard input")
	f.StringVar(&o.username, "username", "", "user name, for kind basic")
	passphraseFlag(cmd, &o.passphraseFile)
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

// given reports whether a flag has the secret, so that no prompt is needed.
func (o *secretOptions) given() bool { return o.file != "" || o.stdin }

// read returns the secret, from a prompt for what if no flag has it.
func (o *secretOptions) read(ctx context.Context, a *app, what string) (vault.Secret, error) {
	var raw []byte
	var err error
	switch {
	case o.file != "":
		if raw, err = a.readSecretFile(o.file, vault.MaxSecret); err != nil {
			return vault.Secret{}, hint.New(fmt.Errorf("read the secret: %w", err),
				"name a readable file that holds only the secret")
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
		return vault.Secret{}, hint.New(errors.New("read the secret: none was given, and there is no terminal to ask on"),
			"pass --secret-file or --secret-stdin")
	}
	s, err := vault.NewSecret(raw)
	if err != nil {
		return s, hint.New(err, "give only the secret, in one line")
	}
	return s, nil
}

// readSecretFile returns the content of a file, or of a shell's pipe, of at most limit bytes and a line end. It warns
// about a file that other users can read.
func (a *app) readSecretFile(path string, limit int64) ([]byte, error) {
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
		a.infof("aileron: warning: other users of this host can read %[1]s; run: chmod 600 %[1]s", path)
	}
	raw, err := io.ReadAll(io.LimitReader(f, limit+3))
	if err != nil {
		return nil, err
	}
	if int64(len(raw)) > limit+2 {
		return nil, fmt.Errorf("%s has more than %d bytes", path, limit)
	}
	return raw, nil
}
