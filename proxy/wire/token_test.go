package wire

import (
	"bytes"
	"net/textproto"
	"strings"
	"testing"
)

// Every byte in every place of a value is judged, whatever is in front of it and behind it.
func TestControlCharactersAreSeenEverywhere(t *testing.T) {
	for length := range 40 {
		for _, filler := range []string{"a", "\t", "\x80", "\xff", " "} {
			value := []byte(strings.Repeat(filler, length))
			for at := range value {
				for c := range 256 {
					old := value[at]
					value[at] = byte(c)
					want := c < ' ' && c != '\t' || c == 0x7f
					if got := HasControl(string(value)); got != want {
						t.Fatalf("HasControl(%q) = %v, want %v", value, got, want)
					}
					value[at] = old
				}
			}
		}
	}
}

func TestBlanksAroundAValueAreTrimmed(t *testing.T) {
	for _, s := range []string{"", " ", "\t \t", "a", " a", "a\t", " \ta b\t ", "\u00a0a\u00a0", "\va\r"} {
		if got, want := TrimBlanks(s), strings.Trim(s, " \t"); got != want {
			t.Errorf("TrimBlanks(%q) = %q, want %q", s, got, want)
		}
	}
}

// A name that is taken as it is has the spelling that net/textproto gives it.
func TestACanonicalNameIsNetTextprotos(t *testing.T) {
	for _, name := range []string{"", "Host", "host", "ETag", "Etag", "X-Request-Id", "x-request-id", "X-Request-ID",
		"-A", "-a", "A--B", "A-b", "3-D", "X_Y", "X_y", "Set-Cookie ", "\u212aey", "Na\x80me", "A.B", "A-"} {
		if isCanonical(name) && textproto.CanonicalMIMEHeaderKey(name) != name {
			t.Errorf("%q is taken for %q", name, textproto.CanonicalMIMEHeaderKey(name))
		}
		lower := []byte(name + ": v\r\n")
		if n := CanonicalizeNames(lower); n != len(lower) {
			t.Errorf("%q: %d bytes are whole lines, want %d", lower, n, len(lower))
		}
		if got, _, _ := strings.Cut(string(lower), ":"); isToken(name) && !isCanonical(got) {
			t.Errorf("%q became %q, which is not canonical", name, got)
		}
	}
}

// A head ends with its first empty line, in whatever pieces it comes.
func TestAHeadEndsWithItsFirstEmptyLine(t *testing.T) {
	for head, rest := range map[string]string{
		"A: b\r\n\r\n": "C: d\r\n\r\n", "A: b\n\n": "\r\n\r\n", "A: b\r\n\n": "\n\n", "\n\n": "", "A: \r\r\n\r\n": "\n",
		"A: b\n\r\nc\r\n\r\n": "", "A: b\r\r\n\n": "", "\r\n\r\n": "x",
	} {
		data := []byte(head + rest)
		for n := range len(data) + 1 {
			want := -1
			crlf, lf := bytes.Index(data[:n], []byte("\r\n\r\n")), bytes.Index(data[:n], []byte("\n\n"))
			switch {
			case crlf >= 0 && (lf < 0 || crlf < lf):
				want = crlf + 4
			case lf >= 0:
				want = lf + 2
			}
			if got := headEnd(data[:n], 0); got != want || want >= 0 && want != len(head) {
				t.Errorf("headEnd(%q) = %d, want %d", data[:n], got, want)
			}
			if from := max(0, n-3); want < 0 && n < len(data) && headEnd(data[:n+1], from) != headEnd(data[:n+1], 0) {
				t.Errorf("headEnd(%q, %d) differs", data[:n+1], from)
			}
		}
	}
}
