package signature

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"

	"aead.dev/minisign"
)

// SecretKey signs connectors. It does not print.
type SecretKey struct{ key minisign.PrivateKey }

// Format writes a placeholder, for every verb.
func (SecretKey) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte("[secret key]")) }

// GenerateKey returns a new key.
func GenerateKey() (SecretKey, error) {
	_, key, err := minisign.GenerateKey(nil)
	if err != nil {
		return SecretKey{}, fmt.Errorf("make a key: %w", err)
	}
	return SecretKey{key}, nil
}

// ErrWrongPassphrase is returned for a secret key that the passphrase does not decrypt.
var ErrWrongPassphrase = errors.New("the passphrase is wrong")

// Encrypt returns the secret key file of minisign, encrypted with a passphrase. Scrypt
// takes 1 GiB of memory for some seconds, as minisign's own parameters do.
func (k SecretKey) Encrypt(passphrase []byte) ([]byte, error) {
	text, err := minisign.EncryptKey(string(passphrase), k.key)
	if err != nil {
		return nil, fmt.Errorf("encrypt the key: %w", err)
	}
	return append(text, '\n'), nil
}

// The layout of a secret key: three algorithms of two bytes, the salt, the limits of
// scrypt, and the key with its checksum.
const (
	secretKeySize = 158
	kdfNone       = 0
	kdfScrypt     = 0x6353
)

// isSecretKey reports whether a line has the size of a secret key.
func isSecretKey(line string) bool {
	raw, err := strict.DecodeString(line)
	return err == nil && len(raw) == secretKeySize
}

// ParseSecretKey reads a secret key file of minisign. It calls passphrase only if the
// key is encrypted: minisign -W makes others, for machines.
func ParseSecretKey(data []byte, passphrase func() ([]byte, error)) (SecretKey, error) {
	text := strings.ReplaceAll(string(data), "\r\n", "\n")
	_, line, ok := strings.Cut(strings.TrimSuffix(text, "\n"), "\n")
	if len(data) > MaxKeyFile || !ok || !strings.HasPrefix(text, untrustedPrefix) || !isSecretKey(line) {
		if _, err := ParsePublicKey(data); err == nil {
			return SecretKey{}, errors.New("it is a public key; name the secret key")
		}
		return SecretKey{}, errors.New("it is not a secret key file of minisign")
	}
	raw, err := strict.DecodeString(line)
	if err != nil {
		return SecretKey{}, err
	}
	switch kdf := binary.LittleEndian.Uint16(raw[2:]); kdf {
	case kdfNone:
		var k SecretKey
		if err := k.key.UnmarshalText([]byte(untrustedPrefix + "\n" + line)); err != nil {
			return SecretKey{}, err
		}
		return k, nil
	case kdfScrypt:
		p, err := passphrase()
		if err != nil {
			return SecretKey{}, err
		}
		key, err := minisign.DecryptKey(string(p), []byte(untrustedPrefix+"\n"+line))
		if err != nil {
			return SecretKey{}, ErrWrongPassphrase
		}
		return SecretKey{key}, nil
	default:
		return SecretKey{}, fmt.Errorf("it is encrypted in a way that is not known (%#x)", kdf)
	}
}

// Public returns the public key.
func (k SecretKey) Public() PublicKey {
	public, _ := k.key.Public().(minisign.PublicKey)
	return PublicKey{public}
}

// Sign returns the signature.sig of a claim, in the prehashed form. The same key and
// claim result in the same bytes.
func (k SecretKey) Sign(claim Claim) ([]byte, error) {
	r := minisign.NewReader(strings.NewReader(claim.Hash))
	if _, err := io.Copy(io.Discard, r); err != nil {
		return nil, err
	}
	sig := r.SignWithComments(k.key, claim.comment(), offerPrefix+k.Public().String())
	// A damaged key file can hold a public half of another key.
	trust := Trust{Authority: AuthorityOf(claim.FQN), Keys: []Known{{Key: k.Public()}}}
	if _, err := Check(trust, claim, sig); err != nil {
		return nil, fmt.Errorf("sign %s: the key does not verify what it signs: %w", claim.comment(), err)
	}
	return sig, nil
}
