package signature

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
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
