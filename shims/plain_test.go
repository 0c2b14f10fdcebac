package shims

import (
	"strings"
	"testing"
)

// The quick reading of ASCII results in what the reading of any text does.
func FuzzPlainASCII(f *testing.F) {
	for _, s := range []string{
		"", " ", "a", " a", "a ", "a  b", "a b", "  a   b  ", "a\tb", "\n", "a\x7fb", "é", "a é", "a\xff",
		strings.Repeat("x", maxText), strings.Repeat("x", maxText+1), strings.Repeat("x ", maxText/2),
		strings.Repeat("x ", maxText/2) + "y", strings.Repeat("x", maxText) + " ", strings.Repeat("x", maxText) + "  y",
		strings.Repeat("x", maxText-1) + " y", strings.Repeat("x", maxText-1) + "  ", strings.Repeat("x  ", maxText) + "é",
		strings.Repeat("x ", maxText) + "\x00",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if text, ok := plainASCII(s); ok && text != plainOf(s) {
			t.Errorf("plainASCII(%q) = %q, want %q", s, text, plainOf(s))
		}
		if got := plain(s); got != plainOf(s) {
			t.Errorf("plain(%q) = %q, want %q", s, got, plainOf(s))
		}
	})
}
