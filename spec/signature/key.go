package signature

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"aead.dev/minisign"
	"golang.org/x/crypto/blake2b"
)

// KeyID is a number in a key by which people and files refer to it. It is chosen by who
// made the key, and proves nothing.
type KeyID uint64

// String returns the id as minisign prints it, with leading zeros.
func (id KeyID) String() string { return fmt.Sprintf("%016X", uint64(id)) }

// ParseKeyID reads what [KeyID.String] returns. Leading zeros may be missing, as in the
// output of minisign.
func ParseKeyID(text string) (KeyID, error) {
	n, err := strconv.ParseUint(text, 16, 64)
	if err != nil || len(text) > 16 {
		return 0, fmt.Errorf("read the key id %q: it is not up to 16 hexadecimal digits", text)
	}
	return KeyID(n), nil
}

// PublicKey is a public key of minisign.
type PublicKey struct{ key minisign.PublicKey }

// MaxKeyFile is the size of the largest file of a key.
const MaxKeyFile = 4 << 10

// ParsePublicKey reads a public key file of minisign, with or without its comment line.
func ParsePublicKey(data []byte) (PublicKey, error) {
	text := strings.ReplaceAll(string(data), "\r\n", "\n")
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if len(lines) == 2 && strings.HasPrefix(lines[0], untrustedPrefix) {
		lines = lines[1:]
	}
	if len(data) > MaxKeyFile || len(lines) != 1 {
		return PublicKey{}, errors.New("it is not a public key file of minisign")
	}
	if isSecretKey(lines[0]) {
		return PublicKey{}, errors.New("it is a secret key; its publisher keeps it, and gives out the public one")
	}
	return parseKeyLine(lines[0])
}

// parseKeyLine reads the line of a public key.
func parseKeyLine(line string) (PublicKey, error) {
	raw, err := strict.DecodeString(line)
	if err != nil || len(raw) != 2+8+ed25519.PublicKeySize || binary.LittleEndian.Uint16(raw) != minisign.EdDSA {
		return PublicKey{}, errors.New("it is not a public key of minisign")
	}
	var k PublicKey
	if err := k.key.UnmarshalText([]byte(line)); err != nil {
		return PublicKey{}, err
	}
	return k, nil
}

// ID returns the id of the key.
func (k PublicKey) ID() KeyID { return KeyID(k.key.ID()) }

// String returns the key as minisign -P takes it: 56 characters that are the whole key,
// so that to compare them is to compare the key.
func (k PublicKey) String() string { return k.key.String() }

// File returns the key as the public key file of minisign.
func (k PublicKey) File() []byte {
	return fmt.Appendf(nil, "%sminisign public key %s\n%s\n", untrustedPrefix, k.ID(), k)
}

// Equal reports whether both are the same key with the same id.
func (k PublicKey) Equal(other PublicKey) bool { return k.key.Equal(other.key) }

// sameKey reports whether both are the same key, whatever their ids: the holder of a key
// can give it any id.
func (k PublicKey) sameKey(other PublicKey) bool { return k.raw() == other.raw() }

// raw returns the Ed25519 key.
func (k PublicKey) raw() (b [ed25519.PublicKeySize]byte) {
	text, err := base64.StdEncoding.DecodeString(k.String())
	if err == nil && len(text) == 2+8+len(b) {
		copy(b[:], text[2+8:])
	}
	return b
}

// verifyMessage verifies the first signature of a file, as minisign does.
func verifyMessage(key ed25519.PublicKey, algorithm uint16, message, sig []byte) bool {
	if algorithm == minisign.HashEdDSA {
		sum := blake2b.Sum512(message)
		message = sum[:]
	}
	return ed25519.Verify(key, message, sig)
}

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
	if littleWork {
		return k.encryptLittle(passphrase)
	}
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
