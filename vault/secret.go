package vault

import (
	"errors"
	"fmt"
	"log/slog"
)

// Secret is a credential's bytes. Whatever prints, logs or marshals it gives
// "[secret]"; only Reveal gives the bytes, and its callers are few.
type Secret struct{ b *string }

const hidden = "[secret]"

// MinSecret and MaxSecret bound a secret's length in bytes. A shorter one
// could not be told from ordinary text when answers are searched for it.
const (
	MinSecret = 8
	MaxSecret = 16 << 10
)

// NewSecret takes the bytes of a file or a prompt. One trailing line end is
// dropped. Control characters, spaces at the ends, and anything but ASCII are
// refused: none of them survives an HTTP field. The error never holds a byte.
func NewSecret(raw []byte) (Secret, error) {
	s := string(raw)
	if n := len(s); n > 0 && s[n-1] == '\n' {
		s = s[:n-1]
		if n := len(s); n > 0 && s[n-1] == '\r' {
			s = s[:n-1]
		}
	}
	if len(s) < MinSecret {
		return Secret{}, fmt.Errorf("the secret has fewer than %d bytes, and could not be told from ordinary text", MinSecret)
	}
	if len(s) > MaxSecret {
		return Secret{}, fmt.Errorf("the secret has more than %d bytes", MaxSecret)
	}
	for _, c := range []byte(s) {
		if c < ' ' || c > '~' {
			return Secret{}, errors.New("the secret has a character that is not printable ASCII; is it the right file?")
		}
	}
	if s[0] == ' ' || s[len(s)-1] == ' ' {
		return Secret{}, errors.New("the secret begins or ends with a space")
	}
	same := true
	for i := range len(s) {
		same = same && s[i] == s[0]
	}
	if same {
		return Secret{}, errors.New("the secret is one character again and again")
	}
	return Secret{&s}, nil
}

// Reveal gives the bytes. Nothing that it returns may reach a log, an error,
// a row, a file, a process argument or the box.
func (s Secret) Reveal() string {
	if s.b == nil {
		return ""
	}
	return *s.b
}

// IsZero reports a secret that holds nothing.
func (s Secret) IsZero() bool { return s.b == nil }

// String hides.
func (Secret) String() string { return hidden }

// GoString hides.
func (Secret) GoString() string { return hidden }

// Format hides, whatever the verb.
func (Secret) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(hidden)) }

// MarshalText hides.
func (Secret) MarshalText() ([]byte, error) { return []byte(hidden), nil }

// MarshalJSON hides.
func (Secret) MarshalJSON() ([]byte, error) { return []byte(`"` + hidden + `"`), nil }

// LogValue hides.
func (Secret) LogValue() slog.Value { return slog.StringValue(hidden) }
