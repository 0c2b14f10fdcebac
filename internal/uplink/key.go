package uplink

import (
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/ALRubinger/aileron/internal/hint"
)

// Bounds of the text of a key: 256 bits in base64url are 43 characters.
const (
	minKey      = 43
	maxKey      = 512
	minDistinct = 10 // a random key has more, a repeated word fewer
)

// Key is the secret that a plane and the relay of its sandbox share. Each derives the key pairs of both from it, and so
// knows the only public key that its peer may have. It does not print. The zero value is no key.
type Key struct{ text *string }

// String hides the key.
func (Key) String() string { return "[key]" }

// GoString hides the key.
func (Key) GoString() string { return "[key]" }

// IsZero reports whether there is no key.
func (k Key) IsZero() bool { return k.text == nil }

// ReadKey reads a key from a file: random text, as `openssl rand -hex 32` prints it, with at most one line end.
func ReadKey(path string) (Key, error) {
	f, err := os.Open(path)
	if err != nil {
		return Key{}, fmt.Errorf("read the key of the uplink: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxKey+3))
	if err != nil {
		return Key{}, fmt.Errorf("read the key of the uplink: %w", err)
	}
	k, err := ParseKey(strings.TrimSuffix(strings.TrimSuffix(string(data), "\n"), "\r"))
	if err != nil {
		return Key{}, fmt.Errorf("read the key of the uplink in %s: %w", path, err)
	}
	return k, nil
}

// ParseKey returns the key that a text is, and an error if it cannot be a random one.
func ParseKey(text string) (Key, error) {
	var why string
	distinct := map[rune]bool{}
	for _, r := range text {
		distinct[r] = true
	}
	switch {
	case len(text) < minKey || len(text) > maxKey:
		why = fmt.Sprintf("it has %d characters, and must have %d to %d", len(text), minKey, maxKey)
	case strings.Trim(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_+/=") != "":
		why = "it has a character that is neither hexadecimal nor base64"
	case len(distinct) < minDistinct:
		why = "it is not random"
	default:
		return Key{&text}, nil
	}
	return Key{}, hint.New(errors.New(why), "make one with: openssl rand -hex 32")
}

// pair returns the key pair of a role.
func (k Key) pair(r role) (ed25519.PrivateKey, error) {
	seed, err := hkdf.Key(sha256.New, []byte(*k.text), nil, "aileron uplink "+r.String(), ed25519.SeedSize)
	if err != nil {
		return nil, fmt.Errorf("derive the key of the %s: %w", r, err)
	}
	return ed25519.NewKeyFromSeed(seed), nil
}

// role is an end of an uplink.
type role bool

const (
	planeRole role = false
	relayRole role = true
)

func (r role) String() string {
	if r == relayRole {
		return "relay"
	}
	return "plane"
}
