package vault

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"strconv"

	"filippo.io/age"
)

// The scrypt work factor (log2 of N) that new vaults get, and the range in
// which a vault's own is believed: less is a downgrade, more a way to hang us.
const (
	workFactor    = 17
	minWorkFactor = 16
	maxWorkFactor = 20
)

// maxPlain bounds what is unsealed: a secret, its binding, and JSON's escapes.
const maxPlain = 256 << 10

var errBrokenIdentity = fmt.Errorf("open the vault: its %s is broken; restore it from a backup", identityFile)

// factors are the work factors of one vault: what a new identity is sealed
// with, and the least that is believed.
type factors struct{ fresh, least int }

// sealIdentity seals what opens the vault by the passphrase.
func (f factors) sealIdentity(identity *age.X25519Identity, passphrase []byte) ([]byte, error) {
	recipient, err := age.NewScryptRecipient(string(passphrase))
	if err != nil {
		return nil, fmt.Errorf("seal the vault's identity: %w", err)
	}
	recipient.SetWorkFactor(f.fresh)
	return seal([]byte(identity.String()), recipient)
}

// openIdentity is its reverse. Whatever the passphrase, a wrong one is
// ErrWrongPassphrase and nothing else.
func (f factors) openIdentity(sealed, passphrase []byte) (*age.X25519Identity, error) {
	scrypt, err := age.NewScryptIdentity(string(passphrase))
	if err != nil {
		return nil, ErrWrongPassphrase
	}
	scrypt.SetMaxWorkFactor(maxWorkFactor)
	defer debug.FreeOSMemory() // scrypt filled 128 MiB, which a session would hold for good
	plain, err := open(sealed, boundedScrypt{scrypt, f.least})
	var wrong *age.NoIdentityMatchError
	var factor workFactorError
	switch {
	case errors.As(err, &factor):
		return nil, factor
	case errors.As(err, &wrong):
		return nil, ErrWrongPassphrase
	case err != nil:
		return nil, errBrokenIdentity
	}
	identity, err := age.ParseX25519Identity(string(plain))
	if err != nil {
		return nil, errBrokenIdentity // never err: it may quote the identity
	}
	return identity, nil
}

// boundedScrypt looks at the work factor before any work is done. age itself
// has a ceiling and no floor.
type boundedScrypt struct {
	*age.ScryptIdentity
	least int
}

func (b boundedScrypt) Unwrap(stanzas []*age.Stanza) ([]byte, error) {
	for _, s := range stanzas {
		if s.Type != "scrypt" || len(s.Args) != 2 {
			continue
		}
		if n, err := strconv.Atoi(s.Args[1]); err != nil || n < b.least || n > maxWorkFactor {
			return nil, workFactorError(s.Args[1])
		}
	}
	return b.ScryptIdentity.Unwrap(stanzas)
}

// workFactorError is the factor that was asked for, and is not believed.
type workFactorError string

func (e workFactorError) Error() string {
	return fmt.Sprintf("open the vault: its %s asks for the work factor %.20q, and only %d to %d are believed; somebody changed it, restore it from a backup",
		identityFile, string(e), minWorkFactor, maxWorkFactor)
}

func seal(plain []byte, to age.Recipient) ([]byte, error) {
	var out bytes.Buffer
	w, err := age.Encrypt(&out, to)
	if err != nil {
		return nil, fmt.Errorf("seal: %w", err)
	}
	if _, err := w.Write(plain); err != nil {
		return nil, fmt.Errorf("seal: %w", err)
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("seal: %w", err)
	}
	return out.Bytes(), nil
}

func open(sealed []byte, with age.Identity) ([]byte, error) {
	r, err := age.Decrypt(bytes.NewReader(sealed), with)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(r, maxPlain))
}
