package termsafe

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/ALRubinger/aileron/e2e/must"
)

func TestUnsafeCharactersAreEscaped(t *testing.T) {
	for _, c := range []struct{ what, in, want string }{
		{"plain text", "café 東京 \U0001f600 \\ \"", "café 東京 \U0001f600 \\ \""},
		{"line feeds and tabs", "a\tb\nc", "a\tb\nc"},
		{"an escape sequence", "\x1b[31mred", `\u001b[31mred`},
		{"a carriage return", "real\rfake", `real\u000dfake`},
		{"a backspace, a bell and DEL", "\b\a\x7f", `\u0008\u0007\u007f`},
		{"a C1 control, CSI", "\u009b31m", `\u009b31m`},
		{"the ends of C1", "\u0080\u009f\u00a0", "\\u0080\\u009f\u00a0"},
		{"an override", "gpj.\u202eexe", `gpj.\u202eexe`},
		{"isolates and marks", "\u2066\u2069\u200e\u200f\u061c", `\u2066\u2069\u200e\u200f\u061c`},
		{"separators", "\u2028\u2029", `\u2028\u2029`},
		{"zero width", "ad\u200bmin\u2060\ufeff\u00ad", `ad\u200bmin\u2060\ufeff\u00ad`},
		{"a tag character", "\U000e0041", `\udb40\udc41`},
		{"variation selectors", "a\ufe0f\U000e0100", `a\ufe0f\udb40\udd00`},
		{"a filler", "\u3164", `\u3164`},
		{"bytes that are not UTF-8", "\x9b31m\xff", `\x9b31m\xff`},
		{"a real replacement character", "\ufffd", "\ufffd"},
	} {
		if got := Text(c.in); got != c.want {
			t.Errorf("%s: Text(%+q) = %+q, want %+q", c.what, c.in, got, c.want)
		}
		var out bytes.Buffer
		w := NewWriter(&out)
		for i := range len(c.in) { // the worst way to cut it
			if n, err := w.Write([]byte{c.in[i]}); n != 1 || err != nil {
				t.Fatalf("%s: Write = %d, %v", c.what, n, err)
			}
		}
		if err := w.Flush(); err != nil || out.String() != c.want {
			t.Errorf("%s: byte by byte %+q and %v, want %+q", c.what, out.String(), err, c.want)
		}
	}
}

func TestALineStaysOne(t *testing.T) {
	if got, want := Line("a\nb\tc\u202e"), `a\u000ab\u0009c\u202e`; got != want {
		t.Errorf("Line = %q, want %q", got, want)
	}
}

// TestJSONKeepsItsMeaning writes a string of every code point as JSON.
func TestJSONKeepsItsMeaning(t *testing.T) {
	var all strings.Builder
	for r := rune(0); r <= utf8.MaxRune; r++ {
		if utf8.ValidRune(r) {
			all.WriteRune(r)
		}
	}
	in := map[string]any{"all": all.String(), "\u202ekey\u009b": []any{"\x1b", nil, 1.5}}
	var out bytes.Buffer
	enc := json.NewEncoder(NewWriter(&out))
	enc.SetEscapeHTML(false)
	must.Do(t, enc.Encode(in))
	var back map[string]any
	if err := json.Unmarshal(out.Bytes(), &back); err != nil || !reflect.DeepEqual(back, in) {
		t.Errorf("the JSON has another meaning, or none: %v", err)
	}
	for _, r := range out.String() {
		if Unsafe(r) {
			t.Fatalf("%U passed", r)
		}
	}
}

type fails struct{}

func (fails) Write([]byte) (int, error) { return 0, errors.New("closed") }

func TestAWriterReportsFailure(t *testing.T) {
	w := NewWriter(fails{})
	if n, err := w.Write([]byte("x")); n != 0 || err == nil {
		t.Errorf("Write = %d, %v", n, err)
	}
}

func FuzzWriter(f *testing.F) {
	f.Add([]byte("caf\xc3\xa9\u202e\xe2\x80"), 3)
	f.Fuzz(func(t *testing.T, in []byte, at int) {
		at = min(max(at, 0), len(in))
		var out bytes.Buffer
		w := NewWriter(&out)
		_, _ = w.Write(in[:at])
		_, _ = w.Write(in[at:])
		_ = w.Flush()
		if want := Text(string(in)); out.String() != want {
			t.Errorf("cut at %d: %q, want %q", at, out.String(), want)
		}
		for _, r := range out.String() {
			if Unsafe(r) {
				t.Errorf("%U passed", r)
			}
		}
	})
}
