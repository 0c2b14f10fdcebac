// Package unlock finds the passphrase of the vault, and unlocks it. Open [Unlocker.OpenVault] first, which returns the
// vault of the home, unlocked.
package unlock

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/internal/changes"
	"github.com/ALRubinger/aileron/internal/console"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/internal/home"
	"github.com/ALRubinger/aileron/internal/protect"
	"github.com/ALRubinger/aileron/vault"
	"github.com/ALRubinger/aileron/vault/keeper"
)

// Unlocker finds the passphrase of a vault, and unlocks it.
type Unlocker struct {
	*console.Console
	*home.Dir
	changes.Recorder

	flagless bool // no hint names a flag
}

// other returns the way to give a passphrase beside the environment and the terminal.
func (u *Unlocker) other() string {
	if u.flagless {
		return "unlock the vault for a while (aileron vault unlock --for 1h)"
	}
	return "pass --passphrase-file"
}

// passphraseSource is where a passphrase was found: what to look at when it is wrong.
type passphraseSource string

const (
	FromFile    passphraseSource = "--passphrase-file or --passphrase-fd"
	FromEnv     passphraseSource = "AILERON_VAULT_PASSPHRASE"
	fromKeyring passphraseSource = "the OS keyring"
	fromPrompt  passphraseSource = "the prompt"
)

// MaxPassphraseTries is how often a person may mistype.
const MaxPassphraseTries = 3

// Passphrase returns the vault's passphrase: from the file that was named, then from AILERON_VAULT_PASSPHRASE, then
// from the OS keyring, then from a prompt. fresh is for a vault that is about to be created: the prompt asks twice,
// and the keyring is left out, since what it holds belongs to an earlier vault.
func (u *Unlocker) Passphrase(ctx context.Context, file string, fresh bool) ([]byte, error) {
	p, _, err := u.findPassphrase(ctx, file, fresh)
	return p, err
}

func (u *Unlocker) findPassphrase(ctx context.Context, file string, fresh bool) ([]byte, passphraseSource, error) {
	if file != "" {
		p, err := u.AwaitPassphraseFile(ctx, file)
		return p, FromFile, err
	}
	if p := u.Getenv(string(FromEnv)); p != "" {
		return []byte(p), FromEnv, nil
	}
	var keyring error
	if !fresh {
		home, err := u.Home()
		if err != nil {
			return nil, "", err
		}
		p, err := vault.FromKeyring(home)
		if err == nil {
			return p, fromKeyring, nil
		}
		keyring = err
	}
	if !u.Interactive() {
		err := errors.New("find the passphrase: none was given, and there is no terminal to ask on")
		if KeyringFails(keyring) {
			err = fmt.Errorf("%w; %w", err, keyring)
		}
		return nil, "", hint.New(err, "set AILERON_VAULT_PASSPHRASE, %s, or run it in a terminal", u.other())
	}
	if errors.Is(keyring, vault.ErrKeyringTimeout) { // it was waited for
		u.Infof("aileron: %v", keyring)
	}
	p, err := u.PromptPassphrase(ctx, fresh)
	return p, fromPrompt, err
}

// KeyringFails reports whether the error of a keyring is of one that may have the passphrase, and does not return it.
func KeyringFails(err error) bool {
	return err != nil && !errors.Is(err, vault.ErrNoKeyring) && !errors.Is(err, vault.ErrKeyringEmpty)
}

func (u *Unlocker) PromptPassphrase(ctx context.Context, fresh bool) ([]byte, error) {
	if fresh {
		return u.PromptNewPassphrase(ctx, "vault")
	}
	return u.PromptSecret(ctx, "passphrase of the vault", false)
}

// PromptNewPassphrase asks for a new passphrase, twice, after it has said what one must be, and again if it is not.
func (u *Unlocker) PromptNewPassphrase(ctx context.Context, of string) (p []byte, err error) {
	u.Infof("aileron: the %s's passphrase must have %d to %d bytes; it is not shown while you type",
		of, vault.MinPassphrase, vault.MaxPassphrase)
	for try := 1; ; try++ {
		if p, err = u.PromptSecret(ctx, "new passphrase of the "+of, true); err == nil {
			err = vault.CheckPassphrase(p)
		}
		if err == nil || try == MaxPassphraseTries || errors.As(err, new(console.ExitError)) || errors.Is(err,
			console.ErrInputEnded) {
			return p, err
		}
		u.Infof("aileron: %v; try again", err)
	}
}

// AwaitPassphraseFile is [Unlocker.ReadPassphraseFile] until ctx ends: a pipe may have no writer yet. The goroutine
// that still reads then ends with the process.
func (u *Unlocker) AwaitPassphraseFile(ctx context.Context, file string) ([]byte, error) {
	type result struct {
		passphrase []byte
		err        error
	}
	read := make(chan result, 1)
	go func() {
		p, err := u.ReadPassphraseFile(file)
		read <- result{p, err}
	}()
	select {
	case r := <-read:
		return r.passphrase, r.err
	case <-ctx.Done():
		return nil, fmt.Errorf("read the passphrase: %w", ctx.Err())
	}
}

// ReadPassphraseFile returns the content of a file without one line end at its end, which editors add.
func (u *Unlocker) ReadPassphraseFile(file string) ([]byte, error) {
	raw, err := u.ReadSecretFile(file, vault.MaxPassphrase)
	if err != nil {
		return nil, hint.New(fmt.Errorf("read the passphrase: %w", err),
			"name a readable file that holds only the passphrase")
	}
	if line, ok := bytes.CutSuffix(raw, []byte("\n")); ok {
		raw = bytes.TrimSuffix(line, []byte("\r"))
	}
	return raw, nil
}

// OpenVault returns the vault of the home, unlocked: with the passphrase that was given, with the key that vault unlock
// --for left with a process, or else with a passphrase that it finds or asks for.
func (u *Unlocker) OpenVault(ctx context.Context, passphraseFile string) (*vault.Vault, error) {
	v, held, err := u.HeldVault(ctx, passphraseFile)
	if err != nil || held {
		return v, err
	}
	v, _, err = u.OpenVaultWith(ctx, passphraseFile)
	return v, err
}

// OpenFlagless is [Unlocker.OpenVault] for a command that has no flag for a passphrase: no hint names one.
func (u Unlocker) OpenFlagless(ctx context.Context) (*vault.Vault, error) {
	u.flagless = true
	return u.OpenVault(ctx, "")
}

// HeldVault returns the vault of the home, and unlocks it if a process holds its key and no passphrase was given.
func (u *Unlocker) HeldVault(ctx context.Context, passphraseFile string) (v *vault.Vault, held bool, err error) {
	if v, err = u.VaultOf(); err != nil {
		return nil, false, err
	}
	if passphraseFile != "" || u.Getenv(string(FromEnv)) != "" || !v.Initialised() {
		return v, false, nil
	}
	home, err := u.Home()
	if err != nil {
		return nil, false, err
	}
	key, err := keeper.Fetch(ctx, home)
	if errors.Is(err, keeper.ErrSilent) {
		u.Infof("aileron: warning: %v; end it with: aileron vault lock", err)
	}
	if err != nil {
		return v, false, nil
	}
	defer clear(key)
	return v, v.UnlockWithKey(key) == nil, nil
}

// OpenVaultWith returns the vault of the home, unlocked, and the passphrase that unlocked it.
func (u *Unlocker) OpenVaultWith(ctx context.Context, passphraseFile string) (*vault.Vault, []byte, error) {
	v, err := u.VaultOf()
	if err != nil {
		return nil, nil, err
	}
	if !v.Initialised() {
		return nil, nil, home.NotInitialised("open the vault")
	}
	p, source, err := u.findPassphrase(ctx, passphraseFile, false)
	if err != nil {
		return nil, nil, err
	}
	err = v.Unlock(p)
	for try := 1; errors.Is(err, vault.ErrWrongPassphrase) && u.Interactive(); try++ {
		if source != fromKeyring && source != fromPrompt || try == MaxPassphraseTries {
			break
		}
		u.Infof("aileron: the passphrase from %s is wrong", source)
		if p, err = u.PromptPassphrase(ctx, false); err != nil {
			return nil, nil, err
		}
		source = fromPrompt
		err = v.Unlock(p)
	}
	if err != nil {
		return nil, nil, u.wrongPassphrase(err, source)
	}
	return v, p, nil
}

// SealingVault returns the vault of the home, to bind credentials. Sealing a secret takes the vault's public recipient
// only, so nothing is asked. A passphrase that was given, or what needs no question, opens the vault all the same: the
// recipient is then known to be the vault's own, and was not exchanged on disk.
func (u *Unlocker) SealingVault(ctx context.Context, passphraseFile string) (*vault.Vault, error) {
	if passphraseFile != "" || u.Getenv(string(FromEnv)) != "" {
		return u.OpenVault(ctx, passphraseFile)
	}
	v, held, err := u.HeldVault(ctx, "")
	if err != nil || held {
		return v, err
	}
	home, err := u.Home()
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
func (u *Unlocker) wrongPassphrase(err error, source passphraseSource) error {
	switch {
	case !errors.Is(err, vault.ErrWrongPassphrase):
		return err
	case source == fromKeyring:
		return hint.New(fmt.Errorf("open the vault: %w", err),
			"it came from %s; set AILERON_VAULT_PASSPHRASE to the right one, or %s, and store it with: "+
				"aileron vault unlock --keyring", source, u.other())
	}
	return hint.New(fmt.Errorf("open the vault: %w", err), "it came from %s", source)
}

// ReadSecretFile returns the content of a file, or of a shell's pipe, of at most limit bytes and a line end. It warns
// about a file that other users can read.
func (u *Unlocker) ReadSecretFile(path string, limit int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	protect.KeepFromChildren(path)
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return nil, fmt.Errorf("%s is a directory", path)
	}
	if info.Mode().IsRegular() && info.Mode().Perm()&0o077 != 0 {
		u.Infof("aileron: warning: other users of this host can read %[1]s; run: chmod 600 %[1]s", path)
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

// KeptUntil returns the process that holds the vault's key, and the zero value if there is none.
func (u *Unlocker) KeptUntil(ctx context.Context) (keeper.State, error) {
	home, err := u.Home()
	if err != nil {
		return keeper.State{}, err
	}
	held, err := keeper.Ask(ctx, home)
	switch {
	case errors.Is(err, keeper.ErrNone):
		return keeper.State{}, nil
	case errors.Is(err, keeper.ErrSilent):
		u.Infof("aileron: warning: process %d holds the vault's key and does not respond; end it with: aileron vault lock",
			held.PID)
		return keeper.State{}, nil
	}
	return held, err
}

// CreateVault creates v with the passphrase that [Unlocker.Passphrase] finds, and returns the passphrase.
func (u *Unlocker) CreateVault(ctx context.Context, v *vault.Vault, passphraseFile string) ([]byte, error) {
	p, err := u.Passphrase(ctx, passphraseFile, true)
	if err != nil {
		return nil, err
	}
	if err := vault.CheckPassphrase(p); err != nil {
		return nil, err
	}
	if err := u.Enact(ctx, changes.Change{What: audit.ChangeVaultInit}, func() error { return v.Init(p) }); err != nil {
		return nil, err
	}
	u.Infof("aileron: vault created. There is no recovery: without the passphrase every credential must be bound again")
	return p, nil
}
