// Package vault keeps the user's credentials, sealed at rest.
//
// An age identity, sealed by a passphrase, opens everything; each binding is
// a file of its own, sealed to that identity's recipient. Names and kinds can
// be read without the passphrase, secrets cannot. The package prompts nobody
// and prints nothing.
package vault

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"filippo.io/age"
	"golang.org/x/sys/unix"
)

// Errors that callers ask for.
var (
	ErrWrongPassphrase = errors.New("the passphrase is wrong")
	ErrLocked          = errors.New("the vault is locked")
	ErrNotBound        = errors.New("there is no such binding")
	ErrNotInitialised  = errors.New("there is no vault yet")
	ErrExists          = errors.New("it is there already")
)

// Passphrase bounds, in bytes.
const (
	MinPassphrase = 8
	MaxPassphrase = 1 << 10
)

const (
	identityFile  = "identity.age"
	recipientFile = "recipient"
	lockFile      = ".lock"
	lockedMarker  = "locked"
)

// Vault is <home>/vault. Opening it reads nothing.
type Vault struct {
	dir     string
	factors factors
	flock   func(fd, how int) error // flock(2); a test has a fake

	mu       sync.Mutex
	identity *age.X25519Identity // nil: locked
}

// Option changes what [Open] returns.
type Option func(*Vault)

// TestOnlyWorkFactor returns an option that makes the passphrase cheap: new
// identities are sealed with the scrypt work factor n, and identities with n or
// more are believed. It is for tests, which open hundreds of vaults. Nothing
// that a release reads at run time leads here, and a release refuses to open
// the vault that such a test made.
func TestOnlyWorkFactor(n int) Option {
	return func(v *Vault) { v.factors = factors{fresh: n, least: min(n, minWorkFactor)} }
}

// Open names the vault in dir, which need not exist.
func Open(dir string, options ...Option) *Vault {
	v := &Vault{dir: dir, factors: factors{fresh: workFactor, least: minWorkFactor}, flock: unix.Flock}
	for _, o := range options {
		o(v)
	}
	return v
}

// Initialised reports whether there is a vault. One that cannot be looked at
// counts: what opens it says why it cannot.
func (v *Vault) Initialised() bool {
	_, err := os.Lstat(filepath.Join(v.dir, identityFile))
	return err == nil || !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR)
}

// Init makes the vault, opened, with a passphrase of MinPassphrase bytes or
// more. A vault that is there is never overwritten: ErrExists.
func (v *Vault) Init(passphrase []byte) error {
	if err := CheckPassphrase(passphrase); err != nil {
		return err
	}
	if err := os.MkdirAll(v.dir, 0o700); err != nil {
		return fmt.Errorf("make the vault: %w", err)
	}
	unlock, err := v.exclusive()
	if err != nil {
		return err
	}
	defer unlock()
	if v.Initialised() {
		return fmt.Errorf("make the vault: %w", ErrExists)
	}
	identity, err := age.GenerateX25519Identity()
	if err != nil {
		return fmt.Errorf("make the vault's identity: %w", err)
	}
	if err := v.write(recipientFile, []byte(identity.Recipient().String()+"\n")); err != nil {
		return err
	}
	sealed, err := v.factors.sealIdentity(identity, passphrase)
	if err != nil {
		return err
	}
	// The identity last: a vault is there when it is whole.
	if err := v.write(identityFile, sealed); err != nil {
		return err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.identity = identity
	return nil
}

// CheckPassphrase returns an error when a vault cannot have the passphrase.
func CheckPassphrase(p []byte) error {
	if len(p) < MinPassphrase || len(p) > MaxPassphrase {
		return fmt.Errorf("the passphrase must have %d to %d bytes", MinPassphrase, MaxPassphrase)
	}
	return nil
}

// Unlock opens the vault for this process. A wrong passphrase gives
// ErrWrongPassphrase and says nothing more; files that were changed or are
// broken give an error that names them.
func (v *Vault) Unlock(passphrase []byte) error {
	if !v.Initialised() {
		return ErrNotInitialised
	}
	if len(passphrase) == 0 || len(passphrase) > MaxPassphrase {
		return ErrWrongPassphrase
	}
	sealed, err := v.read(identityFile)
	if err != nil {
		return err
	}
	identity, err := v.factors.openIdentity(sealed, passphrase)
	if err != nil {
		return err
	}
	recipient, err := v.read(recipientFile)
	if err != nil {
		return err
	}
	if string(bytes.TrimSpace(recipient)) != identity.Recipient().String() {
		return fmt.Errorf("open the vault: %s does not belong to %s; somebody changed it", v.path(recipientFile), identityFile)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.identity = identity
	return nil
}

// Lock forgets what opens the vault, in this process.
func (v *Vault) Lock() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.identity = nil
}

// Unlocked reports whether this process can open secrets.
func (v *Vault) Unlocked() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.identity != nil
}

// ChangePassphrase seals the identity anew. The vault must be unlocked.
func (v *Vault) ChangePassphrase(passphrase []byte) error {
	if err := CheckPassphrase(passphrase); err != nil {
		return err
	}
	v.mu.Lock()
	identity := v.identity
	v.mu.Unlock()
	if identity == nil {
		return ErrLocked
	}
	unlock, err := v.exclusive()
	if err != nil {
		return err
	}
	defer unlock()
	sealed, err := v.factors.sealIdentity(identity, passphrase)
	if err != nil {
		return err
	}
	return v.write(identityFile, sealed)
}

// SetLocked leaves or removes the mark by which running sessions know that
// the vault is locked for all.
func (v *Vault) SetLocked(locked bool) error {
	unlock, err := v.exclusive()
	if err != nil {
		return err
	}
	defer unlock()
	if locked {
		return v.write(lockedMarker, []byte("locked\n"))
	}
	if err := v.remove(lockedMarker); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("unlock the vault: %w", err)
	}
	return nil
}

// LockedForAll reports the mark of SetLocked.
func (v *Vault) LockedForAll() bool {
	_, err := os.Lstat(filepath.Join(v.dir, lockedMarker))
	return err == nil
}
