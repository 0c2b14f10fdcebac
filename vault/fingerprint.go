package vault

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"syscall"
)

// Fingerprint returns a value that changes whenever a binding, the identity or the
// mark of [Vault.SetLocked] may have changed. Other files of the directory do not count: the audit log creates its
// signing key there while sessions run, and a change of their grants ends idle connections.
func (v *Vault) Fingerprint() (string, error) {
	h := sha256.New()
	err := filepath.WalkDir(v.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || isForeign(d.Name()) {
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			return err
		}
		if info, err := d.Info(); err == nil {
			fmt.Fprintln(h, path, info.Size(), info.ModTime().UnixNano(), inode(info))
		}
		return nil
	})
	return hex.EncodeToString(h.Sum(nil)), err
}

// isForeign reports whether a file of the directory says nothing about bindings: the lock, or the key of the audit log,
// which has its final name only when it is complete.
func isForeign(name string) bool {
	return name == lockFile || name == auditKey || name == auditKey+".new"
}

func inode(info fs.FileInfo) uint64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return st.Ino
	}
	return 0
}
