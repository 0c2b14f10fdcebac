// Package plain decides which characters a name, a value and a line of a specification may have.
package plain

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// HasControl reports whether s has a character that must not be part of a printed
// line: C0 and C1 controls, DEL, characters that break or turn lines or are
// invisible, and the mark that the JSON decoder leaves for half a surrogate pair.
func HasControl(s string) bool {
	plain := true
	for i := range len(s) {
		if s[i] < 0x20 || s[i] > 0x7e {
			plain = false
			break
		}
	}
	return !plain && strings.ContainsFunc(s, func(r rune) bool {
		switch {
		case r < 0x20, r >= 0x7f && r < 0xa0, r == utf8.RuneError:
			return true
		case r >= 0x200b && r <= 0x200f, r >= 0x2028 && r <= 0x202e, r >= 0x2060 && r <= 0x2069, r == 0xfeff:
			return true
		}
		return r >= 0xe0000 && r <= 0xe007f // tags: invisible to people, text to models
	})
}

// IsName reports whether s is 1 to 100 ASCII letters, digits and extra characters
// and begins with a letter or digit.
func IsName(s, extra string) bool {
	if s == "" || len(s) > 100 {
		return false
	}
	for i, c := range []byte(s) {
		if !IsAlnum(c) && (i == 0 || strings.IndexByte(extra, c) < 0) {
			return false
		}
	}
	return true
}

// IsAlnum reports whether c is an ASCII letter or digit.
func IsAlnum(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

// IsPrintable reports whether s is printable ASCII.
func IsPrintable(s string) bool {
	for _, c := range []byte(s) {
		if c < ' ' || c > '~' {
			return false
		}
	}
	return true
}

// IsVisible reports whether s is printable ASCII without spaces.
func IsVisible(s string) bool { return IsPrintable(s) && !strings.Contains(s, " ") }

// Either returns words as a list for a message: "a" or "b".
func Either(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = strconv.Quote(w)
	}
	return strings.Join(quoted, " or ")
}
