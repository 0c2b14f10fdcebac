// Package durable writes files that a reader, a kill and a power cut see whole or not at all. [Replace] is the whole of
// it for most; [New] and [SyncDir] are its parts, for a file that is linked or comes from another directory.
package durable

import (
	"errors"
	"os"
	"path/filepath"
)

// Prefix begins the names of files that are not complete yet.
const Prefix = ".new-"

// Replace puts a file of mode 0600 with data at path, also in place of another.
func Replace(path string, data []byte) error {
	tmp, err := New(filepath.Dir(path), data)
	if err != nil {
		return err
	}
	defer os.Remove(tmp) // after the rename there is nothing to remove
	if err := os.Rename(tmp, path); err != nil {
		return err
	}
	return SyncDir(filepath.Dir(path))
}

// New writes data to a new file in dir, of mode 0600 whatever the umask, and returns its path.
func New(dir string, data []byte) (path string, err error) {
	f, err := os.CreateTemp(dir, Prefix+"*")
	if err != nil {
		return "", err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		_ = os.Remove(f.Name())
		return "", err
	}
	return f.Name(), nil
}

// SyncDir makes the names in a directory durable.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
