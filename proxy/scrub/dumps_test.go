package scrub

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"
)

// TestMasksFindTheDigitsOfDumps holds the digits that masks show to those that are read byte by byte, wherever blocks
// end: each run of these must be in those.
func TestMasksFindTheDigitsOfDumps(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 8))
	set := NewSet(tokens(1, 40))
	parts := []string{"00", "0x", "0X", `\x`, "7f", "A0", "0", "a", " ", "-", ":", ",", "\n", `", "`, "%", "x", "10x"}
	several := 0
	for range 5000 {
		var text strings.Builder
		for range 10 + r.IntN(150) {
			text.WriteString(parts[r.IntN(1+r.IntN(len(parts)))])
		}
		s := Scanner{set: set, data: []byte(text.String()), workspace: &workspace{}}
		s.mark()
		from := r.IntN(len(s.data))
		to := from + 1 + r.IntN(len(s.data)-from)
		var slow layer
		slow.hexadecimal(s.data[from:to], set.leastDigits)
		if !s.digits(from, to) {
			s.numbers.symbols = nil
		}
		for run := range bytes.SplitSeq(slow.symbols, []byte{separator}) {
			if len(run) < set.leastDigits {
				continue
			}
			several++
			if !bytes.Contains(s.numbers.symbols, run) {
				t.Fatalf("%q of %q: the masks show %q, which lacks %q", s.data[from:to], s.data, s.numbers.symbols, run)
			}
		}
	}
	if several < 500 {
		t.Errorf("only %d texts have digits in several groups", several)
	}
}

// TestDigitsBehindEscapesAreCounted holds the count to a decoding: with fewer digits than a hit has, none is made.
func TestDigitsBehindEscapesAreCounted(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 9))
	set := NewSet(tokens(1, 40))
	parts := []string{"%25", "%3", "%41", "%", `\x4`, "%3a", "a", "7", "%2C", " ", "%%37", "%61"}
	for range 2000 {
		var text strings.Builder
		for range 1 + r.IntN(60) {
			text.WriteString(parts[r.IntN(len(parts))])
		}
		s := Scanner{set: set, data: []byte(text.String()), workspace: &workspace{}}
		s.mark()
		from := r.IntN(len(s.data))
		to := from + 1 + r.IntN(len(s.data)-from)
		var decoded layer
		decoded.decode(s.data[from:to], inURL, nil, false, false)
		want := 0
		for _, c := range decoded.symbols {
			if isHex(c) {
				want++
			}
		}
		if n := s.unescapedDigits(from, to); n != want {
			t.Fatalf("%q: %d digits, want %d", s.data[from:to], n, want)
		}
	}
}
