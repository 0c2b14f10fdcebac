package native

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// StateRoot returns the directory of this host for what programs keep from one sandbox to the next. It is not below the
// home of aileron: a sandbox can read where its mounts come from.
func StateRoot() (string, error) {
	if root := filepath.Join(os.Getenv("XDG_STATE_HOME"), "aileron-native"); filepath.IsAbs(root) {
		return root, nil
	}
	home, err := os.UserHomeDir()
	return filepath.Join(home, ".local", "state", "aileron-native"), err
}

// StateDir makes a directory below [StateRoot] for a sandbox of that owner, and returns its path without links.
func StateDir(name string, owner Owner) (string, error) {
	root, err := StateRoot()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(root, name)
	parent := filepath.Dir(dir)
	if err := os.MkdirAll(parent, 0o711); err != nil { //nolint:gosec // root's sandbox is another user's
		return "", err
	}
	if parent, err = filepath.EvalSymlinks(parent); err != nil { // of a mount's source no link is followed
		return "", err
	}
	dir = filepath.Join(parent, filepath.Base(dir))
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	if info, err := os.Lstat(dir); err != nil || !info.IsDir() {
		return "", cmp.Or(err, fmt.Errorf("%s is no directory", dir))
	}
	if os.Geteuid() != 0 {
		return dir, nil
	}
	return dir, os.Lchown(dir, owner.UID, owner.GID)
}

// RemoveStates removes the directories below [StateRoot] whose paths match a pattern, and returns how many it removed.
// One that is in use is an error, and is left.
func RemoveStates(pattern string, inUse func(dir string) bool) (removed int, err error) {
	root, err := StateRoot()
	if err != nil {
		return 0, err
	}
	if real, err := filepath.EvalSymlinks(root); err == nil {
		root = real
	}
	found, err := fs.Glob(os.DirFS(root), pattern)
	if err != nil {
		return 0, err
	}
	var faults []error
	for _, name := range found {
		dir := filepath.Join(root, name)
		if inUse(dir) {
			faults = append(faults, fmt.Errorf("remove the state %s: a sandbox uses it", dir))
			continue
		}
		if err := os.RemoveAll(dir); err != nil {
			faults = append(faults, fmt.Errorf("remove a state: %w", err))
			continue
		}
		removed++
		for dir = filepath.Dir(dir); dir != root && os.Remove(dir) == nil; dir = filepath.Dir(dir) { // what is empty
		}
	}
	return removed, errors.Join(faults...)
}
