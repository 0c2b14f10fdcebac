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
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

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

// The scrypt work factor (log2 of N) that new vaults get, and the range in
// which a vault's own is believed: less is a downgrade, more a way to hang us.
const (
	workFactor    = 17
	maxWorkFactor = 20
)

const (
	identityFile  = "identity.age"
	recipientFile = "recipient"
	lockFile      = ".lock"
	lockedMarker  = "locked"
)

// Vault is <home>/vault. Opening it reads nothing.
type Vault struct {
	dir string

	mu       sync.Mutex
	identity *age.X25519Identity // nil: locked
}

// Open names the vault in dir, which need not exist.
func Open(dir string) *Vault { return &Vault{dir: dir} }

// Initialised reports whether there is a vault.
func (v *Vault) Initialised() bool {
	_, err := os.Lstat(filepath.Join(v.dir, identityFile))
	return err == nil
}

// Init makes the vault, opened, with a passphrase of MinPassphrase bytes or
// more. A vault that is there is never overwritten: ErrExists.
func (v *Vault) Init(passphrase []byte) error {
	if err := checkPassphrase(passphrase); err != nil {
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
	if err := v.sealIdentity(identity, passphrase); err != nil {
		return err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.identity = identity
	return nil
}

func checkPassphrase(p []byte) error {
	if len(p) < MinPassphrase || len(p) > MaxPassphrase {
		return fmt.Errorf("the passphrase must have %d to %d bytes", MinPassphrase, MaxPassphrase)
	}
	return nil
}

func (v *Vault) sealIdentity(identity *age.X25519Identity, passphrase []byte) error {
	recipient, err := age.NewScryptRecipient(string(passphrase))
	if err != nil {
		return fmt.Errorf("seal the vault's identity: %w", err)
	}
	recipient.SetWorkFactor(workFactor)
	sealed, err := seal([]byte(identity.String()), recipient)
	if err != nil {
		return err
	}
	return v.write(identityFile, sealed)
}

// Unlock opens the vault for this process. A wrong passphrase gives
// ErrWrongPassphrase and says nothing more.
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
	scrypt, err := age.NewScryptIdentity(string(passphrase))
	if err != nil {
		return ErrWrongPassphrase
	}
	scrypt.SetMaxWorkFactor(maxWorkFactor)
	plain, err := open(sealed, scrypt)
	if err != nil {
		return ErrWrongPassphrase
	}
	identity, err := age.ParseX25519Identity(string(plain))
	if err != nil {
		return fmt.Errorf("open the vault: its identity is broken")
	}
	recipient, err := v.read(recipientFile)
	if err != nil {
		return err
	}
	if string(bytes.TrimSpace(recipient)) != identity.Recipient().String() {
		return fmt.Errorf("open the vault: %s does not belong to its identity; somebody changed it", recipientFile)
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
	if err := checkPassphrase(passphrase); err != nil {
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
	return v.sealIdentity(identity, passphrase)
}

// SetLocked leaves or removes the mark by which running sessions know that
// the vault is locked for all.
func (v *Vault) SetLocked(locked bool) error {
	path := filepath.Join(v.dir, lockedMarker)
	if !locked {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("unlock the vault: %w", err)
		}
		return nil
	}
	return v.write(lockedMarker, []byte("locked\n"))
}

// LockedForAll reports the mark of SetLocked.
func (v *Vault) LockedForAll() bool {
	_, err := os.Lstat(filepath.Join(v.dir, lockedMarker))
	return err == nil
}

// exclusive keeps other processes from writing until it is called back.
func (v *Vault) exclusive() (func(), error) {
	if err := v.safe(); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(v.dir, lockFile), os.O_CREATE|os.O_RDWR|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock the vault: %w", err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("lock the vault: %w", err)
	}
	return func() { _ = f.Close() }, nil
}

// safe refuses a vault directory that others could write to.
func (v *Vault) safe() error {
	info, err := os.Lstat(v.dir)
	if err != nil {
		return fmt.Errorf("open the vault: %w", err)
	}
	if !info.IsDir() {
		return fmt.Errorf("open the vault: %s is not a directory", v.dir)
	}
	if info.Mode().Perm()&0o022 != 0 {
		return fmt.Errorf("open the vault: others may write to %s; chmod 700 it", v.dir)
	}
	return nil
}

// read reads one regular file, however many tries a link makes.
func (v *Vault) read(name string) ([]byte, error) {
	f, err := os.OpenFile(filepath.Join(v.dir, name), os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("read the vault's %s: %w", name, err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("read the vault's %s: %w", name, err)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("read the vault's %s: it is not a regular file", name)
	}
	data, err := io.ReadAll(io.LimitReader(f, 256<<10))
	if err != nil {
		return nil, fmt.Errorf("read the vault's %s: %w", name, err)
	}
	return data, nil
}

// write replaces one file: a reader and a power cut see the old or the new.
func (v *Vault) write(name string, data []byte) error {
	path := filepath.Join(v.dir, name)
	fail := func(err error) error { return fmt.Errorf("write the vault's %s: %w", name, err) }
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fail(err)
	}
	tmp, err := os.CreateTemp(filepath.Dir(path), ".new-*")
	if err != nil {
		return fail(err)
	}
	defer os.Remove(tmp.Name()) // after the rename there is nothing to remove
	_, err = tmp.Write(data)
	if err == nil {
		err = tmp.Sync()
	}
	if err := errors.Join(err, tmp.Close()); err != nil {
		return fail(err)
	}
	if err := os.Rename(tmp.Name(), path); err != nil {
		return fail(err)
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return fail(err)
	}
	if err := errors.Join(dir.Sync(), dir.Close()); err != nil {
		return fail(err)
	}
	return nil
}

func seal(plain []byte, to age.Recipient) ([]byte, error) {
	var out bytes.Buffer
	w, err := age.Encrypt(&out, to)
	if err != nil {
		return nil, fmt.Errorf("seal: %w", err)
	}
	if _, err := w.Write(plain); err != nil {
		return nil, fmt.Errorf("seal: %w", err)
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("seal: %w", err)
	}
	return out.Bytes(), nil
}

func open(sealed []byte, with age.Identity) ([]byte, error) {
	r, err := age.Decrypt(bytes.NewReader(sealed), with)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(r, 256<<10))
}
