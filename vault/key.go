package vault

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"filippo.io/age"
)

// Key returns what opens the vault without its passphrase, to be held in memory by
// another process of the user. It must not reach a file, a log, an error, or a
// process argument. The vault must be unlocked.
func (v *Vault) Key() ([]byte, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.identity == nil {
		return nil, ErrLocked
	}
	return []byte(v.identity.String()), nil
}

// UnlockWithKey unlocks the vault for this process with what [Vault.Key] returned. The
// key of another vault, or of one that was in this place before, is refused.
func (v *Vault) UnlockWithKey(key []byte) error {
	identity, err := age.ParseX25519Identity(string(key))
	if err != nil {
		return errors.New("open the vault: its key is broken") // never err: it may quote the key
	}
	recipient, err := v.Recipient()
	if err != nil {
		return err
	}
	if recipient != identity.Recipient().String() {
		return errors.New("open the vault: the key is of another vault")
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.identity = identity
	return nil
}

// Recipient returns the public key to which secrets are sealed, as the vault's directory
// has it. It changes with the vault, and never with the passphrase.
func (v *Vault) Recipient() (string, error) {
	raw, err := v.read(recipientFile)
	return strings.TrimSpace(string(raw)), err
}

// unlockWith unlocks the vault with its identity, after it has checked the recipient to
// which secrets are sealed while the vault is locked. A missing recipient is written
// anew: it follows from the identity.
func (v *Vault) unlockWith(identity *age.X25519Identity) error {
	recipient, err := v.read(recipientFile)
	if errors.Is(err, fs.ErrNotExist) {
		return v.restoreRecipient(identity)
	}
	if err != nil {
		return err
	}
	// Without a passphrase nothing authenticates this file, so a program that may write
	// to it could have had new secrets sealed to itself: say so, and open nothing.
	if string(bytes.TrimSpace(recipient)) != identity.Recipient().String() {
		return fmt.Errorf("open the vault: %[1]s was changed: it does not belong to %[2]s, and credentials bound since "+
			"are sealed to another key; remove %[1]s, replace those credentials, and rebind them",
			v.path(recipientFile), identityFile)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.identity = identity
	return nil
}

// restoreRecipient writes the recipient of the identity, and unlocks the vault.
func (v *Vault) restoreRecipient(identity *age.X25519Identity) error {
	unlock, err := v.exclusive()
	if err != nil {
		return err
	}
	defer unlock()
	if err := v.write(recipientFile, []byte(identity.Recipient().String()+"\n")); err != nil {
		return err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.identity = identity
	return nil
}
