package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/vault"
)

// passphraseSource is where a passphrase was found: what to look at when it is
// wrong.
type passphraseSource string

const (
	fromFile    passphraseSource = "--passphrase-file"
	fromEnv     passphraseSource = "AILERON_VAULT_PASSPHRASE"
	fromKeyring passphraseSource = "the OS keyring"
	fromPrompt  passphraseSource = "the prompt"
)

// passphraseTries is how often a person may mistype.
const passphraseTries = 3

// passphrase finds the vault's passphrase: a file that was named, then
// AILERON_VAULT_PASSPHRASE, then the OS keyring, then a prompt. fresh is for
// the passphrase of a vault to be made: a person gives it twice, and what the
// keyring still holds of an earlier vault is no choice of theirs.
func (a *app) passphrase(ctx context.Context, file string, fresh bool) ([]byte, error) {
	p, _, err := a.findPassphrase(ctx, file, fresh)
	return p, err
}

func (a *app) findPassphrase(ctx context.Context, file string, fresh bool) ([]byte, passphraseSource, error) {
	if file != "" {
		p, err := a.awaitPassphraseFile(ctx, file)
		return p, fromFile, err
	}
	if p := a.getenv(string(fromEnv)); p != "" {
		return []byte(p), fromEnv, nil
	}
	if !fresh {
		home, err := a.Home()
		if err != nil {
			return nil, "", err
		}
		if p := vault.FromKeyring(home); p != nil {
			return p, fromKeyring, nil
		}
	}
	if !a.interactive() {
		return nil, "", hint.New(errors.New("find the vault's passphrase: there is none, and nobody to ask"),
			"set AILERON_VAULT_PASSPHRASE, pass --passphrase-file, or run it in a terminal")
	}
	p, err := a.promptPassphrase(ctx, fresh)
	return p, fromPrompt, err
}

func (a *app) promptPassphrase(ctx context.Context, fresh bool) ([]byte, error) {
	if fresh {
		return a.promptSecret(ctx, "new passphrase of the vault", true)
	}
	return a.promptSecret(ctx, "passphrase of the vault", false)
}

// awaitPassphraseFile is readPassphraseFile until ctx ends: a pipe may have no
// writer yet. The reader that is left then ends with the process.
func (a *app) awaitPassphraseFile(ctx context.Context, file string) ([]byte, error) {
	type result struct {
		passphrase []byte
		err        error
	}
	read := make(chan result, 1)
	go func() {
		p, err := a.readPassphraseFile(file)
		read <- result{p, err}
	}()
	select {
	case r := <-read:
		return r.passphrase, r.err
	case <-ctx.Done():
		return nil, fmt.Errorf("read the passphrase: %w", ctx.Err())
	}
}

// readPassphraseFile drops one line end, as editors add it.
func (a *app) readPassphraseFile(file string) ([]byte, error) {
	raw, err := a.readSecretFile(file, vault.MaxPassphrase)
	if err != nil {
		return nil, hint.New(fmt.Errorf("read the passphrase: %w", err), "name a readable file that holds the passphrase alone")
	}
	if line, ok := bytes.CutSuffix(raw, []byte("\n")); ok {
		raw = bytes.TrimSuffix(line, []byte("\r"))
	}
	return raw, nil
}

// vaultOf is the vault of the home, neither opened nor necessarily there.
func (a *app) vaultOf() (*vault.Vault, error) {
	home, err := a.Home()
	if err != nil {
		return nil, err
	}
	return a.vaultAt(home), nil
}

// vaultAt is the vault of a home.
func (a *app) vaultAt(home string) *vault.Vault {
	return vault.Open(filepath.Join(home, "vault"), a.vaultOptions...)
}

// openVault gives the vault, unlocked.
func (a *app) openVault(ctx context.Context, passphraseFile string) (*vault.Vault, error) {
	v, _, err := a.openVaultWith(ctx, passphraseFile)
	return v, err
}

// openVaultWith gives the vault, unlocked, and the passphrase that did it.
func (a *app) openVaultWith(ctx context.Context, passphraseFile string) (*vault.Vault, []byte, error) {
	v, err := a.vaultOf()
	if err != nil {
		return nil, nil, err
	}
	if !v.Initialised() {
		return nil, nil, hint.New(errors.New("open the vault: there is none yet"), "make one with: aileron vault init")
	}
	p, source, err := a.findPassphrase(ctx, passphraseFile, false)
	if err != nil {
		return nil, nil, err
	}
	err = v.Unlock(p)
	for try := 1; errors.Is(err, vault.ErrWrongPassphrase) && a.interactive(); try++ {
		if source != fromKeyring && source != fromPrompt || try == passphraseTries {
			break
		}
		a.sayf("aileron: the passphrase from %s is wrong", source)
		if p, err = a.promptPassphrase(ctx, false); err != nil {
			return nil, nil, err
		}
		source = fromPrompt
		err = v.Unlock(p)
	}
	switch {
	case errors.Is(err, vault.ErrWrongPassphrase) && source == fromKeyring:
		return nil, nil, hint.New(fmt.Errorf("open the vault: %w", err), "it came from %s; give the right one with AILERON_VAULT_PASSPHRASE or --passphrase-file, and keep it with: aileron vault unlock --keyring", source)
	case errors.Is(err, vault.ErrWrongPassphrase):
		return nil, nil, hint.New(fmt.Errorf("open the vault: %w", err), "it came from %s", source)
	case err != nil:
		return nil, nil, err
	}
	return v, p, nil
}
