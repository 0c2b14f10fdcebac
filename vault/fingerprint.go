package vault

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
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

// isForeign reports whether a file of the directory says nothing about bindings: a lock, or the key of the audit log,
// which has its final name only when it is complete.
func isForeign(name string) bool {
	return strings.HasSuffix(name, lockFile) || name == auditKey || name == auditKey+".new"
}

func inode(info fs.FileInfo) uint64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return st.Ino
	}
	return 0
}

// Identity is the name of the vault's identity for [Vault.Digest].
const Identity = ""

// Has reports whether there is a binding of that name, even a broken one.
func (v *Vault) Has(name string) (bool, error) {
	file, err := bindingFile(name)
	if err != nil {
		return false, err
	}
	return v.there(file)
}

// Digest returns a digest of the file of a binding or of the [Identity], or "" if
// there is none. It differs after every change.
func (v *Vault) Digest(name string) (string, error) {
	file := identityFile
	if name != Identity {
		var err error
		if file, err = bindingFile(name); err != nil {
			return "", err
		}
	}
	if there, err := v.there(file); !there {
		return "", err
	}
	data, err := v.read(file)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:]), nil
}

// LockState reports whether the vault is locked for all, by [Vault.SetLocked].
func (v *Vault) LockState() (locked bool, err error) { return v.there(lockedMarker) }
