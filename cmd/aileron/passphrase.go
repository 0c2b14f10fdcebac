package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/vault"
	"github.com/ALRubinger/aileron/vault/keeper"
)

// passphraseSource is where a passphrase was found: what to look at when it is wrong.
type passphraseSource string

const (
	fromFile    passphraseSource = "--passphrase-file or --passphrase-fd"
	fromEnv     passphraseSource = "AILERON_VAULT_PASSPHRASE"
	fromKeyring passphraseSource = "the OS keyring"
	fromPrompt  passphraseSource = "the prompt"
)

// maxPassphraseTries is how often a person may mistype.
const maxPassphraseTries = 3

// passphrase returns the vault's passphrase: from the file that was named, then from AILERON_VAULT_PASSPHRASE, then
// from the OS keyring, then from a prompt. fresh is for a vault that is about to be created: the prompt asks twice,
// and the keyring is left out, since what it holds belongs to an earlier vault.
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
	var keyring error
	if !fresh {
		home, err := a.Home()
		if err != nil {
			return nil, "", err
		}
		p, err := vault.FromKeyring(home)
		if err == nil {
			return p, fromKeyring, nil
		}
		keyring = err
	}
	if !a.interactive() {
		err := errors.New("find the passphrase: none was given, and there is no terminal to ask on")
		if keyringFails(keyring) {
			err = fmt.Errorf("%w; %w", err, keyring)
		}
		return nil, "", hint.New(err, "set AILERON_VAULT_PASSPHRASE, pass --passphrase-file, or run it in a terminal")
	}
	if errors.Is(keyring, vault.ErrKeyringTimeout) { // it was waited for
		a.infof("aileron: %v", keyring)
	}
	p, err := a.promptPassphrase(ctx, fresh)
	return p, fromPrompt, err
}

// keyringFails reports whether the error of a keyring is of one that may have the passphrase, and does not return it.
func keyringFails(err error) bool {
	return err != nil && !errors.Is(err, vault.ErrNoKeyring) && !errors.Is(err, vault.ErrKeyringEmpty)
}

func (a *app) promptPassphrase(ctx context.Context, fresh bool) ([]byte, error) {
	if fresh {
		return a.promptNewPassphrase(ctx, "vault")
	}
	return a.promptSecret(ctx, "passphrase of the vault", false)
}

// promptNewPassphrase asks for a new passphrase, twice, after it has said what one must be, and again if it is not.
func (a *app) promptNewPassphrase(ctx context.Context, of string) (p []byte, err error) {
	a.infof("aileron: the %s's passphrase must have %d to %d bytes; it is not shown while you type",
		of, vault.MinPassphrase, vault.MaxPassphrase)
	for try := 1; ; try++ {
		if p, err = a.promptSecret(ctx, "new passphrase of the "+of, true); err == nil {
			err = vault.CheckPassphrase(p)
		}
		if err == nil || try == maxPassphraseTries || errors.As(err, new(exitError)) || errors.Is(err, errInputEnded) {
			return p, err
		}
		a.infof("aileron: %v; try again", err)
	}
}

// awaitPassphraseFile is readPassphraseFile until ctx ends: a pipe may have no writer yet. The goroutine that still
// reads then ends with the process.
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

// readPassphraseFile returns the content of a file without one line end at its end, which editors add.
func (a *app) readPassphraseFile(file string) ([]byte, error) {
	raw, err := a.readSecretFile(file, vault.MaxPassphrase)
	if err != nil {
		return nil, hint.New(fmt.Errorf("read the passphrase: %w", err),
			"name a readable file that holds only the passphrase")
	}
	if line, ok := bytes.CutSuffix(raw, []byte("\n")); ok {
		raw = bytes.TrimSuffix(line, []byte("\r"))
	}
	return raw, nil
}

// openVault returns the vault of the home, unlocked: with the passphrase that was given, with the key that vault unlock
// --for left with a process, or else with a passphrase that it finds or asks for.
func (a *app) openVault(ctx context.Context, passphraseFile string) (*vault.Vault, error) {
	v, held, err := a.heldVault(ctx, passphraseFile)
	if err != nil || held {
		return v, err
	}
	v, _, err = a.openVaultWith(ctx, passphraseFile)
	return v, err
}

// heldVault returns the vault of the home, and unlocks it if a process holds its key and no passphrase was given.
func (a *app) heldVault(ctx context.Context, passphraseFile string) (v *vault.Vault, held bool, err error) {
	if v, err = a.vaultOf(); err != nil {
		return nil, false, err
	}
	if passphraseFile != "" || a.getenv(string(fromEnv)) != "" || !v.Initialised() {
		return v, false, nil
	}
	home, err := a.Home()
	if err != nil {
		return nil, false, err
	}
	key, err := keeper.Fetch(ctx, home)
	if errors.Is(err, keeper.ErrSilent) {
		a.infof("aileron: warning: %v; end it with: aileron vault lock", err)
	}
	if err != nil {
		return v, false, nil
	}
	defer clear(key)
	return v, v.UnlockWithKey(key) == nil, nil
}

// openVaultWith returns the vault of the home, unlocked, and the passphrase that unlocked it.
func (a *app) openVaultWith(ctx context.Context, passphraseFile string) (*vault.Vault, []byte, error) {
	v, err := a.vaultOf()
	if err != nil {
		return nil, nil, err
	}
	if !v.Initialised() {
		return nil, nil, notInitialised("open the vault")
	}
	p, source, err := a.findPassphrase(ctx, passphraseFile, false)
	if err != nil {
		return nil, nil, err
	}
	err = v.Unlock(p)
	for try := 1; errors.Is(err, vault.ErrWrongPassphrase) && a.interactive(); try++ {
		if source != fromKeyring && source != fromPrompt || try == maxPassphraseTries {
			break
		}
		a.infof("aileron: the passphrase from %s is wrong", source)
		if p, err = a.promptPassphrase(ctx, false); err != nil {
			return nil, nil, err
		}
		source = fromPrompt
		err = v.Unlock(p)
	}
	if err != nil {
		return nil, nil, wrongPassphrase(err, source)
	}
	return v, p, nil
}

// sealingVault returns the vault of the home, to bind credentials. Sealing a secret takes the vault's public recipient
// only, so nothing is asked. A passphrase that was given, or what needs no question, opens the vault all the same: the
// recipient is then known to be the vault's own, and was not exchanged on disk.
func (a *app) sealingVault(ctx context.Context, passphraseFile string) (*vault.Vault, error) {
	if passphraseFile != "" || a.getenv(string(fromEnv)) != "" {
		return a.openVault(ctx, passphraseFile)
	}
	v, held, err := a.heldVault(ctx, "")
	if err != nil || held {
		return v, err
	}
	home, err := a.Home()
	if err != nil {
		return nil, err
	}
	if p, err := vault.FromKeyring(home); err == nil {
		if err := v.Unlock(p); err != nil && !errors.Is(err, vault.ErrWrongPassphrase) {
			return nil, err
		}
	}
	return v, nil
}

// wrongPassphrase adds to the error of an unlock, if it is the passphrase's, where that came from.
func wrongPassphrase(err error, source passphraseSource) error {
	switch {
	case !errors.Is(err, vault.ErrWrongPassphrase):
		return err
	case source == fromKeyring:
		return hint.New(fmt.Errorf("open the vault: %w", err),
			"it came from %s; give the right one with AILERON_VAULT_PASSPHRASE"+
				" or --passphrase-file, and store it with: aileron vault unlock --keyring", source)
	}
	return hint.New(fmt.Errorf("open the vault: %w", err), "it came from %s", source)
}
