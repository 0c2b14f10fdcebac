package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/term"

	"github.com/ALRubinger/aileron/vault"
)

const passphraseMend = "set AILERON_VAULT_PASSPHRASE, pass --passphrase-file, or run it in a terminal"

// passphrase finds the vault's passphrase: a file that was named, then
// AILERON_VAULT_PASSPHRASE, then the OS keyring, then a prompt.
// confirm asks twice, for a passphrase that is new.
func (a *app) passphrase(_ context.Context, file string, confirm bool) ([]byte, error) {
	if file != "" {
		return readPassphraseFile(file)
	}
	if p := a.getenv("AILERON_VAULT_PASSPHRASE"); p != "" {
		return []byte(p), nil
	}
	home, err := a.Home()
	if err != nil {
		return nil, err
	}
	if p := vault.FromKeyring(home); p != nil && !confirm {
		return p, nil
	}
	if !a.interactive() {
		return nil, hint(errors.New("find the vault's passphrase: there is none, and nobody to ask"), passphraseMend)
	}
	return a.promptSecret("passphrase of the vault", confirm)
}

func readPassphraseFile(file string) ([]byte, error) {
	raw, err := readBounded(file, vault.MaxPassphrase+2)
	if err != nil {
		return nil, hint(fmt.Errorf("read the passphrase: %w", err), "--passphrase-file names a readable file with the passphrase in its first line")
	}
	raw = bytes.TrimSuffix(bytes.TrimSuffix(raw, []byte("\n")), []byte("\r"))
	return raw, nil
}

// promptSecret asks the person without an echo.
func (a *app) promptSecret(what string, confirm bool) ([]byte, error) {
	in, ok := a.stdin.(*os.File)
	if !ok {
		return nil, errors.New("ask for the " + what + ": there is no terminal")
	}
	ask := func(prompt string) ([]byte, error) {
		fmt.Fprint(a.stderr, prompt+": ")
		raw, err := term.ReadPassword(int(in.Fd()))
		fmt.Fprintln(a.stderr)
		if err != nil {
			return nil, fmt.Errorf("ask for the %s: %w", what, err)
		}
		return raw, nil
	}
	first, err := ask(what)
	if err != nil || !confirm {
		return first, err
	}
	second, err := ask(what + ", again")
	if err != nil {
		return nil, err
	}
	if !bytes.Equal(first, second) {
		return nil, hint(errors.New("ask for the "+what+": the two differ"), "try again")
	}
	return first, nil
}

// vaultOf is the vault of the home, neither opened nor necessarily there.
func (a *app) vaultOf() (*vault.Vault, error) {
	home, err := a.Home()
	if err != nil {
		return nil, err
	}
	return vault.Open(filepath.Join(home, "vault")), nil
}

// openVault gives the vault, unlocked.
func (a *app) openVault(ctx context.Context, passphraseFile string) (*vault.Vault, error) {
	v, err := a.vaultOf()
	if err != nil {
		return nil, err
	}
	if !v.Initialised() {
		return nil, hint(errors.New("open the vault: there is none yet"), "make one with: aileron vault init")
	}
	p, err := a.passphrase(ctx, passphraseFile, false)
	if err != nil {
		return nil, err
	}
	if err := v.Unlock(p); err != nil {
		if errors.Is(err, vault.ErrWrongPassphrase) {
			return nil, hint(fmt.Errorf("open the vault: %w", err), "check AILERON_VAULT_PASSPHRASE or --passphrase-file")
		}
		return nil, err
	}
	return v, nil
}
