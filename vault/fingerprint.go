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
// mark of [Vault.SetLocked] may have changed.
func (v *Vault) Fingerprint() (string, error) {
	h := sha256.New()
	err := filepath.WalkDir(v.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Name() == lockFile {
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

func inode(info fs.FileInfo) uint64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return st.Ino
	}
	return 0
}
