package vault

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
)

// Renewal is the renewal of one binding's credential. It has the lock of the binding, over all processes, until
// [Renewal.End].
type Renewal struct {
	Binding    Binding
	Credential Credential
	// Interrupted: a process was killed after its [Renewal.Begin] with this very credential, and what
	// the service answered is lost. The grant may be used up.
	Interrupted bool

	v      *Vault
	digest string
	lock   *os.File
	begun  bool
	saved  bool
	lost   bool // what the service answered is not on disk
}

// reserve is how much room a renewal takes on disk before it begins, so that its result has room: more than twice the
// largest secret with its grant, encrypted and in base64.
const reserve = 128 << 10

// RenewBinding begins the renewal of a binding. It waits until ctx ends for those of other processes, and of other
// callers in this one. Its errors are those of [Vault.Credential].
func (v *Vault) RenewBinding(ctx context.Context, name string) (*Renewal, error) {
	lock, err := v.lockBinding(ctx, name)
	if err != nil {
		return nil, err
	}
	r := &Renewal{v: v, lock: lock}
	if err := r.read(name); err != nil {
		_ = lock.Close()
		return nil, err
	}
	return r, nil
}

func (r *Renewal) read(name string) (err error) {
	if r.digest, err = r.v.Digest(name); err != nil {
		return err
	}
	if r.Credential, err = r.v.Credential(name); err != nil {
		return err
	}
	if r.Binding, err = r.v.Binding(name); err != nil {
		return err
	}
	mark := make([]byte, len(r.digest))
	n, err := io.ReadFull(io.NewSectionReader(r.lock, 0, int64(len(mark))), mark)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("read the mark of the last renewal of %s: %w", name, err)
	}
	r.Interrupted = n > 0 && string(mark[:n]) == r.digest
	return nil
}

// Begin marks on disk that the grant is about to be sent, and reserves the room for what comes back. If there is
// none it returns an error, and nothing may be sent.
func (r *Renewal) Begin() error {
	fail := func(err error) error {
		_ = r.lock.Truncate(0)
		return fmt.Errorf("make room for the renewal of %s: %w", r.Binding.Name, err)
	}
	// The room first: a mark that is there is complete.
	if _, err := r.lock.WriteAt([]byte(strings.Repeat(" ", reserve)), 0); err != nil {
		return fail(err)
	}
	if _, err := r.lock.WriteAt([]byte(r.digest), 0); err != nil {
		return fail(err)
	}
	if err := r.lock.Sync(); err != nil {
		return fail(err)
	}
	r.begun = true
	return nil
}

// Save replaces the credential by c, and the binding's facts about its login by those of b. It returns [ErrChanged] if
// the binding was rebound meanwhile, and [ErrNotBound] if it was revoked. After another error it may be called again.
func (r *Renewal) Save(b Binding, c Credential) error {
	if r.begun {
		if err := r.lock.Truncate(int64(len(r.digest))); err != nil { // the room is for this
			return fmt.Errorf("renew %s: %w", r.Binding.Name, err)
		}
	}
	err := r.v.renew(b, r.digest, c)
	r.saved = err == nil
	r.lost = err != nil && !errors.Is(err, ErrChanged) && !errors.Is(err, ErrNotBound)
	return err
}

// End ends the renewal, so that other processes can begin one. If Save failed last, or if nothing was begun after one
// that was interrupted, they know that the grant may be used up.
func (r *Renewal) End() {
	if !r.lost && (r.begun || r.saved) {
		_ = r.lock.Truncate(0)
	}
	_ = r.lock.Close()
}

// renew replaces the secret, the grant and the facts of a binding whose [Vault.Digest] is still digest.
func (v *Vault) renew(b Binding, digest string, c Credential) error {
	unlock, err := v.change()
	if err != nil {
		return err
	}
	defer unlock()
	if _, err := v.binding(b.Name); err != nil {
		return err
	}
	is, err := v.Digest(b.Name)
	if err == nil && is != digest {
		err = fmt.Errorf("renew %s: %w", b.Name, ErrChanged)
	}
	if err != nil {
		return err
	}
	b.Updated = now()
	return v.store(b, c.Secret, c.Grant)
}

// lockBinding opens and locks the lock file of a binding. It waits until ctx ends.
func (v *Vault) lockBinding(ctx context.Context, name string) (*os.File, error) {
	file, err := bindingFile(name)
	if err != nil {
		return nil, err
	}
	if there, err := v.there(file); err == nil && !there {
		return nil, fmt.Errorf("%s: %w", name, ErrNotBound) // whose directory may be missing too
	}
	if err := v.safe(file); err != nil {
		return nil, err
	}
	return v.lock(ctx, lockOf(file))
}

// lockOf returns the file with the lock of a binding's file.
func lockOf(file string) string { return strings.TrimSuffix(file, ".json") + lockFile }

// removeLock removes the lock of a binding that was removed. Who has it still can save nothing any more.
func (v *Vault) removeLock(file string) error {
	if err := v.remove(lockOf(file)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
