package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// ErrNotInstalled is returned for a connector that is not in the store.
var ErrNotInstalled = errors.New("it is not installed")

// Remove removes a version of a connector, or all of them if version is empty. fqn
// may also be a hash, for a connector that is too broken to have a name. around,
// if not nil, calls remove for each entry, and may do something before and after.
func (s *Store) Remove(fqn, version string, around func(e Entry, remove func() error) error) ([]Entry, error) {
	if around == nil {
		around = func(_ Entry, remove func() error) error { return remove() }
	}
	unlock, err := s.lock()
	if err != nil {
		return nil, err
	}
	defer unlock()
	entries, err := s.List()
	if err != nil {
		return nil, err
	}
	var gone []Entry
	for _, e := range entries {
		if string(e.FQN) != fqn && e.Hash != fqn || version != "" && e.Version != version {
			continue
		}
		if err := around(e, func() error { return s.drop(e) }); err != nil {
			return gone, fmt.Errorf("remove %s: %w", e, err)
		}
		gone = append(gone, e)
	}
	if len(gone) == 0 {
		if version != "" {
			fqn += "@" + version
		}
		return nil, fmt.Errorf("remove %s: %w", fqn, ErrNotInstalled)
	}
	return gone, nil
}

// drop removes an entry. It renames first, so that a session sees all of the
// connector or nothing.
func (s *Store) drop(e Entry) error {
	trash, err := os.MkdirTemp(filepath.Join(s.dir, "tmp"), "removed-")
	if err != nil {
		return err
	}
	name := strings.TrimPrefix(e.Hash, "sha256:")
	if err := os.Rename(filepath.Join(s.connectors(), name), filepath.Join(trash, name)); err != nil {
		return errors.Join(err, os.RemoveAll(trash))
	}
	_ = os.Remove(s.indexFile(e.Hash))
	return errors.Join(flushDir(s.connectors()), os.RemoveAll(trash))
}

// lock excludes other installations and removals, in this process and in others,
// until unlock is called. It removes what a killed process has left.
func (s *Store) lock() (unlock func(), err error) {
	tmp := filepath.Join(s.dir, "tmp")
	f, err := os.OpenFile(filepath.Join(tmp, ".lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock the connector store: %w", err)
	}
	if err := s.flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		return nil, errors.Join(fmt.Errorf("lock the connector store: %w", err), f.Close())
	}
	left, _ := os.ReadDir(tmp)
	for _, d := range left {
		if dir := filepath.Join(tmp, d.Name()); d.Name() != ".lock" && !s.isInUse(dir) {
			_ = os.RemoveAll(dir)
		}
	}
	return func() { _ = f.Close() }, nil // closing the file lets go of the lock
}
