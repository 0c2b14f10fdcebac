package shims

import (
	"bytes"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/spec"
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

// A list ends before the item that would go beyond the bound, and not before one that just fits.
func TestAListEndsAtItsBound(t *testing.T) {
	for _, c := range []struct {
		most int
		want string
	}{{5, "ab cde"}, {4, "ab … 1 more"}, {2, "ab … 1 more"}, {1, " … 2 more"}} {
		if got := within([]string{"ab", "cde"}, c.most); got != c.want {
			t.Errorf("within %d = %q, want %q", c.most, got, c.want)
		}
	}
}

// An example has the arguments that are required, or one; where there is none, none.
func TestAnExampleHasWhatIsRequired(t *testing.T) {
	optional, required := spec.Input{Name: "a"}, spec.Input{Name: "b", Type: "integer", Required: true}
	for _, c := range []struct {
		inputs []spec.Input
		want   string
	}{
		{nil, ""},
		{[]spec.Input{{Name: "n", Type: "integer"}, optional}, ` --args '{"n":1}'`},
		{[]spec.Input{optional, required}, ` --args '{"b":1}'`},
	} {
		var b bytes.Buffer
		if writeExample(&b, c.inputs); b.String() != c.want {
			t.Errorf("the example of %v is %q, want %q", c.inputs, b.String(), c.want)
		}
	}
}
