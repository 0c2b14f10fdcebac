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

// The scrypt work factor (log2 of N) of new vaults, and the range in which that of
// an existing vault is accepted: less is a downgrade, more makes aileron hang.
const (
	workFactor    = 17
	minWorkFactor = 16
	maxWorkFactor = 20
)

// maxPlain bounds what is decrypted: a secret, its binding, and the escapes of JSON.
const maxPlain = 256 << 10

var errBrokenIdentity = fmt.Errorf("open the vault: its %s is broken; restore it from a backup", identityFile)

// factors are the work factors of one vault: that of a new identity, and the least
// that is accepted.
type factors struct{ fresh, least int }

// sealIdentity seals the identity of the vault with the passphrase.
func (f factors) sealIdentity(identity *age.X25519Identity, passphrase []byte) ([]byte, error) {
	recipient, err := age.NewScryptRecipient(string(passphrase))
	if err != nil {
		return nil, fmt.Errorf("seal the vault's identity: %w", err)
	}
	recipient.SetWorkFactor(f.fresh)
	return seal([]byte(identity.String()), recipient)
}

// openIdentity returns the identity that sealIdentity sealed. Any wrong passphrase is
// ErrWrongPassphrase and nothing else.
func (f factors) openIdentity(sealed, passphrase []byte) (*age.X25519Identity, error) {
	scrypt, err := age.NewScryptIdentity(string(passphrase))
	if err != nil {
		return nil, ErrWrongPassphrase
	}
	scrypt.SetMaxWorkFactor(maxWorkFactor)
	if f.least == minWorkFactor { // not a test's, which needs no memory, and has a process full of others
		defer debug.FreeOSMemory() // scrypt used 128 MiB, which a session would keep
	}
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

// boundedScrypt checks the work factor before any work is done. age has an upper
// bound and no lower one.
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

// workFactorError is a work factor that is not accepted.
type workFactorError string

func (e workFactorError) Error() string {
	return fmt.Sprintf("open the vault: its %s asks for the work factor %.20q, and only %d to %d are accepted; "+
		"it was changed: restore it from a backup", identityFile, string(e), minWorkFactor, maxWorkFactor)
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
