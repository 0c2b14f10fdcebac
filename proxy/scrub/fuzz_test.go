package scrub

import (
	"html"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

var (
	percentEscape = regexp.MustCompile(`%([uU]00)?[0-9a-fA-F]{2}`)
	jsonEscape    = regexp.MustCompile(`\\(u00[0-9a-fA-F]{2}|u\{0{0,6}[0-9a-fA-F]{2}\}|` +
		`U0000(00[0-9a-fA-F]{2})|[xX][0-9a-fA-F]{2}|["'/\\nrt])`)
)

// slowly are the specified decodings, in a short and slow implementation.
var slowly = []func(string) string{
	func(s string) string { return s },
	func(s string) string { return percentEscape.ReplaceAllStringFunc(s, hexValue) },
	func(s string) string {
		return jsonEscape.ReplaceAllStringFunc(s, func(e string) string {
			switch {
			case strings.Contains("nrt", e[1:]):
				return "\n"
			case len(e) == 2:
				return e[1:]
			}
			return hexValue(e)
		})
	},
	html.UnescapeString,
}

func hexValue(escape string) string {
	escape = strings.TrimSuffix(escape, "}")
	n, _ := strconv.ParseUint(escape[len(escape)-2:], 16, 8)
	return string([]byte{byte(n)})
}

// FuzzScrub searches every decoding of the output for the rest of a secret, with the
// input whole and in pieces of any size.
func FuzzScrub(f *testing.F) {
	set := NewSet([]Credential{{Secret: []byte(longSecret)}, {Secret: []byte(shortSecret)}})
	r := rand.New(rand.NewPCG(3, 3))
	for range 40 {
		form, _, _ := spell(r, longSecret)
		f.Add("<"+form+">", r.Uint64())
	}
	f.Fuzz(func(t *testing.T, text string, seed uint64) {
		r := rand.New(rand.NewPCG(seed, 1))
		whole := scrubbed(t, set, text, func() int { return 1 << 20 })
		parts := scrubbed(t, set, text, func() int { return 1 + r.IntN(12) })
		for _, got := range []string{whole, parts} {
			for i, outer := range slowly {
				for j, inner := range slowly {
					left := strings.ToLower(inner(outer(got)))
					for at := range len(longSecret) - Window + 1 {
						if strings.Contains(left, strings.ToLower(longSecret[at:at+Window])) {
							t.Fatalf("%q became %q: decoded by %d and %d: %q is left", text, got, i, j, longSecret[at:at+Window])
						}
					}
					if strings.Contains(left, strings.ToLower(shortSecret)) {
						t.Fatalf("%q became %q: decoded by %d and %d: the short secret is left", text, got, i, j)
					}
				}
			}
		}
	})
}
