package signature

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ALRubinger/aileron/internal/filelock"
)

// Known is a key of an authority, as it is kept.
type Known struct {
	Key   PublicKey
	Since time.Time // when it was added, replaced or removed, by this machine's clock; nothing is decided by it
	By    string    // FQN@VERSION of the first connector that it signed; "" if a person added it

	VouchedBy KeyID // the key of the authority that vouched for it; 0 if none had to
}

// Trust is what is known of the keys of an authority. The zero value is an authority of
// which nothing is known.
type Trust struct {
	Authority Authority
	Keys      []Known // any of them may sign
	Retired   []Known // each was replaced by a key for which it vouched: they verify what is installed, and nothing new
	Revoked   []Known // none of them may, until it is added again
}

// Signs reports whether connectors of the authority must be signed: it has a key, or had
// one that was removed.
func (t Trust) Signs() bool { return len(t.Keys)+len(t.Retired)+len(t.Revoked) > 0 }

// isRevoked reports whether a signature names, or comes with, a key that was removed.
func (t Trust) isRevoked(s signed) bool {
	offered, offers := s.offered()
	return slices.ContainsFunc(t.Revoked, func(k Known) bool {
		return k.Key.ID() == s.keyID() || offers && k.Key.sameKey(offered)
	})
}

// has reports whether a key is in a list, under any id.
func has(list []Known, key PublicKey) bool {
	return slices.ContainsFunc(list, func(k Known) bool { return k.Key.sameKey(key) || k.Key.ID() == key.ID() })
}

// clone returns a copy that can be changed.
func (t Trust) clone() Trust {
	return Trust{Authority: t.Authority, Keys: slices.Clone(t.Keys), Retired: slices.Clone(t.Retired),
		Revoked: slices.Clone(t.Revoked)}
}

// ids returns the ids of the keys for a message.
func (t Trust) ids() string {
	var all []string
	for _, k := range t.Keys {
		all = append(all, k.Key.ID().String())
	}
	if len(all) == 0 {
		return "a key that was removed or replaced"
	}
	return "key " + strings.Join(all, " or ")
}

// find returns the known key of that id in list, or -1.
func find(list []Known, id KeyID) int {
	return slices.IndexFunc(list, func(k Known) bool { return k.Key.ID() == id })
}

// Keys is the directory <home>/trust/keys, with a file for each authority. Its methods
// are safe for concurrent use by goroutines and processes.
type Keys struct {
	dir   string
	locks filelock.Locker
	now   func() time.Time
}

// OpenKeys returns the keys that are kept in <home>/trust/keys. It reads nothing yet.
func OpenKeys(home string) *Keys {
	return &Keys{dir: filepath.Join(home, "trust", "keys"), now: time.Now}
}

// Of returns what is known of an authority. What cannot be read, or could have been
// written by another user, is an error: it must not look like an authority without keys.
func (k *Keys) Of(a Authority) (Trust, error) {
	t := Trust{Authority: a}
	data, err := k.read(fileOf(a))
	if errors.Is(err, fs.ErrNotExist) {
		return t, nil
	}
	if err == nil {
		t, err = parseTrust(data)
	}
	if err == nil && t.Authority != a {
		err = fmt.Errorf("it is of %s", t.Authority)
	}
	if err != nil {
		return Trust{}, &KeysError{Path: filepath.Join(k.dir, fileOf(a)), Err: err}
	}
	return t, nil
}

// List returns what is known of every authority, by name.
func (k *Keys) List() ([]Trust, error) {
	all := []Trust{}
	if err := k.safe(); errors.Is(err, fs.ErrNotExist) {
		return all, nil
	} else if err != nil {
		return nil, &KeysError{Path: k.dir, Err: err}
	}
	files, err := os.ReadDir(k.dir)
	if err != nil {
		return nil, &KeysError{Path: k.dir, Err: err}
	}
	for _, f := range files {
		if strings.HasPrefix(f.Name(), ".") {
			continue // the lock, and what a killed process left
		}
		a, ok := authorityOfFile(f.Name())
		if !ok {
			return nil, &KeysError{Path: filepath.Join(k.dir, f.Name()), Err: errors.New("it is no file of keys")}
		}
		t, err := k.Of(a)
		if err != nil {
			return nil, err
		}
		if t.Signs() { // not removed between two looks
			all = append(all, t)
		}
	}
	return all, nil
}

// Remember keeps the first key of an authority, which has signed a connector. It returns
// an [*Error] if the authority has another one by now, and keeps nothing then.
func (k *Keys) Remember(ctx context.Context, claim Claim, key PublicKey) error {
	return k.update(ctx, AuthorityOf(claim.FQN), func(t *Trust) error {
		switch i := find(t.Keys, key.ID()); {
		case i >= 0 && t.Keys[i].Key.Equal(key):
			return nil
		case len(t.Keys) > 0:
			return &Error{Claim: claim, Reason: ReasonKeyChanged, KeyID: key.ID(), Message: fmt.Sprintf(
				"it is signed with the key %s, and the connectors of %s are signed with %s", key.ID(), t.Authority, t.ids())}
		case has(t.Retired, key):
			return Status{Key: key, Retired: true}.Refusal(*t, claim)
		case has(t.Revoked, key):
			return &Error{Claim: claim, Reason: ReasonRevoked, KeyID: key.ID(), Message: fmt.Sprintf(
				"it is signed with the key %s, which was removed from the keys of %s", key.ID(), t.Authority)}
		}
		t.Keys = append(t.Keys, Known{Key: key, Since: k.now(), By: claim.comment()})
		return nil
	})
}

// Add accepts a key for an authority, in addition to those that it has.
func (k *Keys) Add(ctx context.Context, a Authority, key PublicKey) error {
	return k.update(ctx, a, func(t *Trust) error {
		same := func(k Known) bool { return k.Key.sameKey(key) }
		t.Revoked, t.Retired = slices.DeleteFunc(t.Revoked, same), slices.DeleteFunc(t.Retired, same)
		if i := find(slices.Concat(t.Keys, t.Retired, t.Revoked), key.ID()); i >= 0 {
			if i < len(t.Keys) && t.Keys[i].Key.Equal(key) {
				return nil
			}
			return fmt.Errorf("%s has another key with the id %s", a, key.ID())
		}
		if len(t.Keys) == maxKeys {
			return fmt.Errorf("%s has %d keys; remove one of them first", a, maxKeys)
		}
		t.Keys = append(t.Keys, Known{Key: key, Since: k.now()})
		return nil
	})
}

// Rotate makes the key of a package known in place of those that it replaces, by the vouches that the package carries.
// It verifies all of it again, against what is known by now, and returns the keys that are retired by that: none if
// another process was faster.
func (k *Keys) Rotate(ctx context.Context, claim Claim, sig []byte) (retired []PublicKey, err error) {
	err = k.update(ctx, AuthorityOf(claim.FQN), func(t *Trust) error {
		st, err := Check(*t, claim, sig)
		if err != nil {
			return err
		}
		retired = nil
		next := Known{Key: st.Key, Since: k.now(), By: claim.comment()}
		for _, key := range st.Replaces {
			old := Known{Key: key, Since: k.now(), VouchedBy: next.VouchedBy}
			if i := find(t.Keys, key.ID()); i >= 0 {
				old = t.Keys[i]
				old.Since = k.now()
				t.Keys = slices.Delete(t.Keys, i, i+1)
			}
			t.Retired = append(t.Retired, old)
			next.VouchedBy = key.ID()
			retired = append(retired, key)
		}
		switch {
		case len(retired) == 0:
			return nil
		case len(t.Retired) > maxKeys:
			return fmt.Errorf("%d keys of %s were replaced already", maxKeys, t.Authority)
		case find(t.Keys, st.Key.ID()) < 0:
			t.Keys = append(t.Keys, next)
		}
		return nil
	})
	return retired, err
}

// ErrNoKey is returned for a key or an authority that is not kept.
var ErrNoKey = errors.New("there is no such key")

// Revoke makes a key of an authority one that must not sign for it. The authority keeps
// having to sign: with another of its keys, or with a new one, which is its first again.
func (k *Keys) Revoke(ctx context.Context, a Authority, id KeyID) error {
	return k.update(ctx, a, func(t *Trust) error {
		from := &t.Keys
		if find(t.Keys, id) < 0 {
			from = &t.Retired
		}
		i := find(*from, id)
		if i < 0 {
			return ErrNoKey
		}
		gone := (*from)[i]
		gone.Since = k.now()
		*from = slices.Delete(*from, i, i+1)
		if len(t.Revoked) == maxKeys {
			return fmt.Errorf("%d keys of %s were removed already", maxKeys, a)
		}
		t.Revoked = append(t.Revoked, gone)
		return nil
	})
}

// Forget removes everything that is known of an authority.
func (k *Keys) Forget(ctx context.Context, a Authority) error {
	return k.update(ctx, a, func(t *Trust) error {
		if !t.Signs() {
			return ErrNoKey
		}
		t.Keys, t.Retired, t.Revoked = nil, nil, nil
		return nil
	})
}

// update changes what is known of an authority while no other process does.
func (k *Keys) update(ctx context.Context, a Authority, change func(*Trust) error) error {
	if err := os.MkdirAll(k.dir, 0o700); err != nil {
		return fmt.Errorf("make the directory of publishers' keys: %w", err)
	}
	if err := k.safe(); err != nil {
		return &KeysError{Path: k.dir, Err: err}
	}
	lock, err := k.lock(ctx)
	if err != nil {
		return err
	}
	defer lock.Close()
	before, err := k.Of(a)
	if err != nil {
		return err
	}
	after := before.clone()
	if err := change(&after); err != nil {
		return err
	}
	return k.write(after)
}

// lock waits until no other process changes keys. Each does so for milliseconds.
func (k *Keys) lock(ctx context.Context) (*os.File, error) {
	for {
		f, err := k.locks.Lock(filepath.Join(k.dir, ".lock"), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return f, nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			return nil, fmt.Errorf("lock the publishers' keys: %w", err)
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("lock the publishers' keys: another aileron holds them: %w", ctx.Err())
		case <-time.After(2 * time.Millisecond):
		}
	}
}
