package vault

import (
	"crypto/sha256"
	"encoding/hex"
)

// Identity is the name under which [Vault.Digest] takes the vault's identity.
const Identity = ""

// Has reports whether there is a binding of that name, a broken one included.
func (v *Vault) Has(name string) (bool, error) {
	file, err := bindingFile(name)
	if err != nil {
		return false, err
	}
	return v.there(file)
}

// Digest returns a digest of a binding's file, or of what the passphrase
// opens, "" where there is none. It differs after every change.
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

// LockState returns the mark of SetLocked, or why it cannot be looked at.
func (v *Vault) LockState() (locked bool, err error) { return v.there(lockedMarker) }
