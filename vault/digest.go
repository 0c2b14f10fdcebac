package vault

import (
	"crypto/sha256"
	"encoding/hex"
)

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
