package vault

import (
	"errors"
	"fmt"
	"log/slog"
)

// Secret holds the bytes of a credential. Printed, logged or marshalled in any form,
// it is "[secret]". Only [Secret.Reveal] returns the bytes, and has few callers.
type Secret struct{ b *string }

const hidden = "[secret]"

// MinSecret and MaxSecret bound the length of a secret in bytes. A shorter one could
// not be distinguished from ordinary text in a response that is searched for it.
const (
	MinSecret = 8
	MaxSecret = 16 << 10
)

// NewSecret returns the secret in the bytes of a file or a prompt, without one
// trailing line end. It refuses control characters, spaces at the ends, and
// anything but ASCII, as none of them survives an HTTP field. The error has no
// byte of the secret.
func NewSecret(raw []byte) (Secret, error) {
	s := string(raw)
	if n := len(s); n > 0 && s[n-1] == '\n' {
		s = s[:n-1]
		if n := len(s); n > 0 && s[n-1] == '\r' {
			s = s[:n-1]
		}
	}
	if len(s) < MinSecret {
		return Secret{}, fmt.Errorf("the secret has fewer than %d bytes, and could not be distinguished "+
			"from ordinary text", MinSecret)
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
		return Secret{}, errors.New("the secret repeats one character")
	}
	return Secret{&s}, nil
}

// Reveal returns the bytes. They must not reach a log, an error, an audit event, a
// file, a process argument, or the sandbox.
func (s Secret) Reveal() string {
	if s.b == nil {
		return ""
	}
	return *s.b
}

// IsZero reports whether s is the zero value, which holds nothing.
func (s Secret) IsZero() bool { return s.b == nil }

// String returns "[secret]".
func (Secret) String() string { return hidden }

// GoString returns "[secret]".
func (Secret) GoString() string { return hidden }

// Format writes "[secret]" for every verb.
func (Secret) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(hidden)) }

// MarshalText returns "[secret]".
func (Secret) MarshalText() ([]byte, error) { return []byte(hidden), nil }

// MarshalJSON returns "[secret]" as a JSON string.
func (Secret) MarshalJSON() ([]byte, error) { return []byte(`"` + hidden + `"`), nil }

// LogValue returns "[secret]".
func (Secret) LogValue() slog.Value { return slog.StringValue(hidden) }
