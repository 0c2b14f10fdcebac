package scrub

import (
	"encoding/base32"
	"encoding/base64"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// percents writes c for a URL in one of the ways that there are.
func percents(r *rand.Rand, c byte, all bool) string {
	plain := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
	if plain && !all && r.IntN(3) > 0 {
		return string(c)
	}
	return fmt.Sprintf([]string{"%%%02x", "%%%02X"}[r.IntN(2)], c)
}

func jsons(r *rand.Rand, c byte, all bool) string {
	switch {
	case strings.IndexByte(`"\/`, c) >= 0 && r.IntN(2) == 0:
		return `\` + string(c)
	case c == '"' || c == '\\' || all || r.IntN(3) == 0:
		return fmt.Sprintf([]string{`\u%04x`, `\u%04X`}[r.IntN(2)], c)
	}
	return string(c)
}

func entitiesOf(r *rand.Rand, c byte, all bool) string {
	named := map[byte]string{'&': "&amp;", '"': "&quot;", '<': "&lt;", '>': "&gt;", '\'': "&#39;", '+': "&plus;",
		'/': "&#x2F;"}
	if n, ok := named[c]; ok {
		if strings.IndexByte(`&"<>`, c) >= 0 && r.IntN(4) == 0 { // HTML reads its oldest names without the semicolon too
			n = strings.TrimSuffix(n, ";")
		}
		return n
	}
	if !all && c != '&' && r.IntN(3) > 0 {
		return string(c)
	}
	return fmt.Sprintf([]string{"&#%d;", "&#%03d;", "&#x%x;", "&#X%X;", "&#x00%x;"}[r.IntN(5)], c)
}

// script writes c in one of JavaScript's ways, old or new, or Python's.
func script(r *rand.Rand, c byte, all bool) string {
	if !all && c != '\\' && c != '%' && r.IntN(3) > 0 {
		return string(c)
	}
	return fmt.Sprintf([]string{`\u{%x}`, `\u{%04X}`, `\u{%06x}`, `\U%08x`, `\U%04X`, `\x%02x`, `\X%02X`}[r.IntN(7)], c)
}

// unescapes writes c for JavaScript's unescape.
func unescapes(r *rand.Rand, c byte, all bool) string {
	if !all && c != '%' && r.IntN(3) > 0 {
		return string(c)
	}
	return fmt.Sprintf([]string{"%%u%04x", "%%u%04X", "%%U%04X", "%%%02x"}[r.IntN(4)], c)
}

// numbers writes secret as an array of its bytes.
func numbers(r *rand.Rand, secret string) string {
	sep := []string{",", ", ", " ", ",\n    ", ",\r\n\t\t", ";", `","`, ",\n              "}[r.IntN(8)]
	var out []string
	for _, c := range []byte(secret) {
		out = append(out, fmt.Sprint(c))
	}
	return strings.Join(out, sep)
}

// inCase folds the case of text, whole or letter by letter.
func inCase(r *rand.Rand, text string) string {
	switch r.IntN(3) {
	case 0:
		return strings.ToLower(text)
	case 1:
		return strings.ToUpper(text)
	}
	return strings.Map(func(c rune) rune {
		if r.IntN(2) == 0 {
			return unicode.ToUpper(c)
		}
		return unicode.ToLower(c)
	}, text)
}

func inGroups(text, sep string, width int) string {
	return strings.Join(slices.Collect(func(yield func(string) bool) {
		for part := range slices.Chunk([]byte(text), width) {
			if !yield(string(part)) {
				return
			}
		}
	}), sep)
}

func quotedPrintable(r *rand.Rand, c byte, all bool) string {
	soft := []string{"", "", "", "=\r\n", "=\n"}[r.IntN(5)]
	if c == '=' || all || r.IntN(3) == 0 {
		return soft + fmt.Sprintf("=%02X", c)
	}
	return soft + string(c)
}

func dump(r *rand.Rand, secret string) string {
	before, sep := []string{"", `\x`, "0x", `\\x`}[r.IntN(4)], []string{"", ":", " ", "-", ", ", ",", "; "}[r.IntN(7)]
	var out strings.Builder
	for i, c := range []byte(secret) {
		if i > 0 {
			out.WriteString(sep)
		}
		fmt.Fprintf(&out, []string{before + "%02x", before + "%02X"}[r.IntN(2)], c)
	}
	return strings.TrimPrefix(out.String(), before)
}

// each spells every byte with how.
func each(r *rand.Rand, text string, how func(*rand.Rand, byte, bool) string) string {
	var out strings.Builder
	all := r.IntN(3) == 0
	for _, c := range []byte(text) {
		out.WriteString(how(r, c, all))
	}
	return out.String()
}

// spell writes secret in one of the specified encodings, chosen at random, and returns
// how many bytes at both ends may contain some of its neighbours' bits.
func spell(r *rand.Rand, secret string) (form string, slack int, name string) {
	escapes := []func(*rand.Rand, byte, bool) string{percents, jsons, entitiesOf, script, unescapes}
	switch n := r.IntN(14); n {
	case 0:
		return secret, 0, "raw"
	case 1, 2, 3, 4, 5:
		return each(r, secret, escapes[n-1]), 0, "escaped"
	case 6:
		return strings.TrimLeft(each(r, secret, quotedPrintable), "\r\n"), 3, "quoted-printable"
	case 7:
		return dump(r, secret), 0, "dump"
	case 8:
		a, b := escapes[r.IntN(len(escapes))], escapes[r.IntN(len(escapes))]
		return each(r, each(r, secret, a), b), 0, "escaped twice"
	case 9:
		return inCase(r, secret), 0, "in another case"
	case 10:
		return numbers(r, secret), 62, "numbers" // three may leave at the end of a line
	case 11:
		enc := []*base32.Encoding{base32.StdEncoding, base32.HexEncoding}[r.IntN(2)]
		if r.IntN(2) == 0 {
			enc = enc.WithPadding(base32.NoPadding)
		}
		form = inCase(r, enc.EncodeToString([]byte(strings.Repeat("x", r.IntN(5))+secret+strings.Repeat("\xff", r.IntN(5)))))
		if r.IntN(3) == 0 {
			return inGroups(form, []string{"\n", "\r\n", `\n`}[r.IntN(3)], 16+r.IntN(30)), 18, "base32 in lines"
		}
		return form, 18, "base32"
	}
	enc := []*base64.Encoding{base64.StdEncoding, base64.URLEncoding, base64.RawStdEncoding,
		base64.RawURLEncoding}[r.IntN(4)]
	form = enc.EncodeToString([]byte(strings.Repeat("x", r.IntN(3)) + secret + strings.Repeat("\xff", r.IntN(3))))
	switch r.IntN(6) {
	case 0:
		form = inGroups(form, []string{"\r\n", "\n", `\n`, `\r\n`, "\n "}[r.IntN(5)], 12+r.IntN(30))
		return form, 10, "base64 in lines"
	case 3:
		return inGroups(form, []string{" ", "\t", "  ", " \t "}[r.IntN(4)], 16+r.IntN(30)), 12, "base64 with blanks"
	case 4:
		return inCase(r, form), 7, "base64 in another case"
	case 1:
		return each(r, form, percents), 18, "base64 in a URL"
	case 2:
		return strings.ReplaceAll(form, "/", `\/`), 10, "base64 in JSON"
	}
	return form, 7, "base64"
}

// TestEverySpellingAnywhereIsRedactedAndNothingElse writes secrets in random
// spellings at random places, most of them near the ends of pieces.
func TestEverySpellingAnywhereIsRedactedAndNothingElse(t *testing.T) {
	secrets := []string{longSecret, "sk+ant/Q9=other&tail of \"the\" same beginning", `k\7-ZpW3rTq8 overlaps`,
		"a secret with blanks+plus", shortSecret, "0123456789abcdef"}
	var credentials []Credential
	for _, s := range secrets {
		credentials = append(credentials, Credential{Secret: []byte(s)})
	}
	set := NewSet(credentials)
	filler := `{"id": 1234, "text": "Some words, a \"quote\" & 100% more.\n", "url":"https:\/\/x.example\/?a=1&b=2"},` +
		"\r\n"
	for seed := range uint64(250) {
		r := rand.New(rand.NewPCG(seed, 7))
		at := []int{1, 64, 500, 4096, 32768, 65536}[r.IntN(6)]
		at += r.IntN(80) - min(at, 60)
		var text strings.Builder
		for text.Len() < at {
			text.WriteString(filler[:min(len(filler), at-text.Len())])
		}
		text.WriteString(" <")
		secret := secrets[r.IntN(len(secrets))]
		form, slack, name := spell(r, secret)
		from := text.Len()
		text.WriteString(form)
		to := text.Len()
		text.WriteString("> " + filler)
		in := text.String()
		for _, size := range []func() int{func() int { return 1 << 20 }, func() int { return 4096 },
			func() int { return 1 + r.IntN(9) }, func() int { return 1 }} {
			if len(in) > 5000 && size() < 10 {
				continue
			}
			out := scrubbed(t, set, in, size)
			if out[:from] != in[:from] || out[to:] != in[to:] {
				t.Fatalf("seed %d: %s: what stands around %q was changed: %q", seed, name, form, out[max(0, from-40):])
			}
			if slack = min(slack, len(form)/2); strings.Trim(out[from+slack:to-slack], "*") != "" {
				t.Fatalf("seed %d, piece %d: %s: %q became %q", seed, size(), name, form, out[from:to])
			}
		}
	}
}

func TestTheWorstGuessesAreNoOracle(t *testing.T) {
	set := NewSet([]Credential{{Secret: []byte(longSecret)}, {Secret: []byte(shortSecret)}})
	r := rand.New(rand.NewPCG(1, 9))
	var text strings.Builder
	for i := range 262144 {
		fmt.Fprintf(&text, "%04x", uint16(i*40503))
	}
	// An attacker who has 15 bytes of a secret cannot confirm them by their encodings
	// either.
	for range 4000 {
		at := r.IntN(len(longSecret) - Window)
		form, _, name := spell(r, longSecret[at:at+Window-1])
		if strings.HasPrefix(name, "base") { // a neighbour's bits may be right by chance
			text14 := []byte("xxxx"[:r.IntN(5)] + longSecret[at:at+Window-2] + "\xff")
			form = []string{base64.StdEncoding.EncodeToString(text14), base32.StdEncoding.EncodeToString(text14),
				base32.HexEncoding.EncodeToString(text14)}[r.IntN(3)]
			form = inCase(r, form)
		}
		text.WriteString("<" + form + "~>")
	}
	in := text.String()
	reader := set.Reader(io.NopCloser(strings.NewReader(in)))
	out, err := io.ReadAll(reader)
	if err != nil || string(out) != in || reader.Hits() != 0 {
		t.Errorf("%d hits, %v", reader.Hits(), err)
		if at := strings.IndexByte(string(out), '*'); at >= 0 {
			t.Errorf("the first in %q", in[max(0, at-40):at+60])
		}
	}
}

func TestSteadyReadingAllocatesNothing(t *testing.T) {
	set := NewSet([]Credential{{Secret: []byte(longSecret)}})
	piece := []byte(strings.Repeat(`{"a":"b\/c","d":"100%25 &amp; more"} `, 400))
	sc := set.NewScanner()
	for range 10 {
		_ = sc.Write(piece)
	}
	least := math.Inf(1) // with -race, pools lose some of what they are given
	for range 50 {
		least = min(least, testing.AllocsPerRun(1, func() { _ = sc.Write(piece) }))
	}
	if least > 0 {
		t.Errorf("%v allocations for a piece", least)
	}
}

func TestTheSourcesErrorComesBehindItsBytes(t *testing.T) {
	set := NewSet([]Credential{{Secret: []byte(longSecret)}})
	r := set.Reader(io.NopCloser(io.MultiReader(strings.NewReader("text "+longSecret[:5]), &failing{})))
	out, err := io.ReadAll(r)
	if string(out) != "text "+longSecret[:5] || err != io.ErrUnexpectedEOF {
		t.Errorf("got %q, %v", out, err)
	}
	stuck := set.Reader(io.NopCloser(&silent{}))
	if _, err := stuck.Read(make([]byte, 10)); err != io.ErrNoProgress {
		t.Errorf("a source that gives nothing: %v", err)
	}
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

type silent struct{}

func (silent) Read([]byte) (int, error) { return 0, nil }
