// Package vault keeps credentials, encrypted at rest.
//
// [Open] returns the vault of a directory. [Vault.Init] creates it, [Vault.Unlock]
// unlocks it for this process, [Vault.Bind] stores a credential and
// [Vault.Credential] returns it.
//
// An age identity, encrypted with the passphrase, decrypts everything. Each binding
// is a file, encrypted to the recipient of that identity, so binding a credential
// needs no passphrase and using one does. Names and kinds can be read without it;
// secrets cannot. There is no recovery: without the
// passphrase, every credential must be bound again. A file that another user
// could have written or exchanged is refused. The package neither prompts nor
// prints.
//
// Open this file first: the life of a vault. binding.go is the credentials in it,
// bindingname.go their names, files.go every read and write, seal.go what age does,
// and keyring.go the passphrase in the keyring of the system.
package vault

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"filippo.io/age"
	"golang.org/x/sys/unix"
)

// The errors that callers distinguish.
var (
	ErrWrongPassphrase = errors.New("the passphrase is wrong")
	ErrLocked          = errors.New("the vault is locked")
	ErrNotBound        = errors.New("there is no such binding")
	ErrLoginNeeded     = errors.New("the service does not renew this login any more")
	ErrNotInitialised  = errors.New("there is no vault yet")
	ErrExists          = errors.New("it is there already")
)

// The bounds of a passphrase, in bytes.
const (
	MinPassphrase = 8
	MaxPassphrase = 1 << 10
)

const (
	identityFile  = "identity.age"
	recipientFile = "recipient"
	lockFile      = ".lock"
	auditKey      = "audit.key" // of package audit, which creates and reads it
	lockedMarker  = "locked"
)

// Vault is the directory <home>/vault. Its methods are safe for concurrent use by
// goroutines and processes.
type Vault struct {
	dir     string
	factors factors
	flock   func(fd, how int) error // flock(2); a test has a fake

	mu       sync.Mutex
	identity *age.X25519Identity // nil: locked
}

// Option is an option of [Open].
type Option func(*Vault)

// TestOnlyWorkFactor returns an option that makes the passphrase cheap: new
// identities are sealed with the scrypt work factor n, and identities with n or
// more are accepted. It is for tests, which open hundreds of vaults. Nothing
// that a release reads at run time leads here, and a release refuses to open
// the vault that such a test created.
func TestOnlyWorkFactor(n int) Option {
	return func(v *Vault) { v.factors = factors{fresh: n, least: min(n, minWorkFactor)} }
}

// Open returns the vault in dir, which need not exist. It reads nothing.
func Open(dir string, options ...Option) *Vault {
	v := &Vault{dir: dir, factors: factors{fresh: workFactor, least: minWorkFactor}, flock: unix.Flock}
	for _, o := range options {
		o(v)
	}
	return v
}

// Initialised reports whether there is a vault. A vault that cannot be read counts:
// the error of opening it has the reason.
func (v *Vault) Initialised() bool {
	_, err := os.Lstat(filepath.Join(v.dir, identityFile))
	return err == nil || !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR)
}

// Init creates the vault and unlocks it. It returns [ErrExists] if there is a vault,
// which is never overwritten.
func (v *Vault) Init(passphrase []byte) error {
	if err := CheckPassphrase(passphrase); err != nil {
		return err
	}
	if err := os.MkdirAll(v.dir, 0o700); err != nil {
		return fmt.Errorf("create the vault: %w", err)
	}
	unlock, err := v.exclusive()
	if err != nil {
		return err
	}
	defer unlock()
	if v.Initialised() {
		return fmt.Errorf("create the vault: %w", ErrExists)
	}
	identity, err := age.GenerateX25519Identity()
	if err != nil {
		return fmt.Errorf("create the identity of the vault: %w", err)
	}
	if err := v.write(recipientFile, []byte(identity.Recipient().String()+"\n")); err != nil {
		return err
	}
	sealed, err := v.factors.sealIdentity(identity, passphrase)
	if err != nil {
		return err
	}
	// The identity last: a vault exists when it is complete.
	if err := v.write(identityFile, sealed); err != nil {
		return err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.identity = identity
	return nil
}

// CheckPassphrase returns an error if a vault cannot have the passphrase.
func CheckPassphrase(p []byte) error {
	if len(p) < MinPassphrase || len(p) > MaxPassphrase {
		return fmt.Errorf("the passphrase must have %d to %d bytes", MinPassphrase, MaxPassphrase)
	}
	return nil
}

// Unlock unlocks the vault for this process. It returns [ErrWrongPassphrase], without
// any detail, for a wrong passphrase. If a file was changed or is broken, the
// error names it.
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
	return v.unlockWith(identity)
}

// Lock locks the vault for this process.
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

// ChangePassphrase encrypts the identity with another passphrase. The vault must be
// unlocked.
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

// SetLocked locks or unlocks the vault for all: running sessions see the mark that it
// writes or removes.
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

// LockedForAll reports whether the vault is locked for all, by [Vault.SetLocked].
func (v *Vault) LockedForAll() bool {
	_, err := os.Lstat(filepath.Join(v.dir, lockedMarker))
	return err == nil
}

// Key returns what opens the vault without its passphrase, to be held in memory by
// another process of the user. It must not reach a file, a log, an error, or a
// process argument. The vault must be unlocked.
func (v *Vault) Key() ([]byte, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.identity == nil {
		return nil, ErrLocked
	}
	return []byte(v.identity.String()), nil
}

// UnlockWithKey unlocks the vault for this process with what [Vault.Key] returned. The
// key of another vault, or of one that was in this place before, is refused.
func (v *Vault) UnlockWithKey(key []byte) error {
	identity, err := age.ParseX25519Identity(string(key))
	if err != nil {
		return errors.New("open the vault: its key is broken") // never err: it may quote the key
	}
	recipient, err := v.Recipient()
	if err != nil {
		return err
	}
	if recipient != identity.Recipient().String() {
		return errors.New("open the vault: the key is of another vault")
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.identity = identity
	return nil
}

// Recipient returns the public key to which secrets are sealed, as the vault's directory
// has it. It changes with the vault, and never with the passphrase.
func (v *Vault) Recipient() (string, error) {
	raw, err := v.read(recipientFile)
	return strings.TrimSpace(string(raw)), err
}

// unlockWith unlocks the vault with its identity, after it has checked the recipient to
// which secrets are sealed while the vault is locked. A missing recipient is written
// anew: it follows from the identity.
func (v *Vault) unlockWith(identity *age.X25519Identity) error {
	recipient, err := v.read(recipientFile)
	if errors.Is(err, fs.ErrNotExist) {
		return v.restoreRecipient(identity)
	}
	if err != nil {
		return err
	}
	// Without a passphrase nothing authenticates this file, so a program that may write
	// to it could have had new secrets sealed to itself: say so, and open nothing.
	if string(bytes.TrimSpace(recipient)) != identity.Recipient().String() {
		return fmt.Errorf("open the vault: %[1]s was changed: it does not belong to %[2]s, and credentials bound since "+
			"are sealed to another key; remove %[1]s, replace those credentials, and rebind them",
			v.path(recipientFile), identityFile)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.identity = identity
	return nil
}

// restoreRecipient writes the recipient of the identity, and unlocks the vault.
func (v *Vault) restoreRecipient(identity *age.X25519Identity) error {
	unlock, err := v.exclusive()
	if err != nil {
		return err
	}
	defer unlock()
	if err := v.write(recipientFile, []byte(identity.Recipient().String()+"\n")); err != nil {
		return err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.identity = identity
	return nil
}
