package scrub

import (
	"bytes"
	"strings"
	"testing"
)

// TestFindCodedLeavesOutNoHit holds that the runs which an encoding does not have are left out, and no hit behind them:
// with a filter that lets everything pass, a window is found behind anything, at any distance.
func TestFindCodedLeavesOutNoHit(t *testing.T) {
	for _, secrets := range [][]Credential{tokens(8, 40), {{Secret: []byte("eleven-byte")}}} {
		findBehindAnything(t, NewSet(secrets))
	}
}

func findBehindAnything(t *testing.T, set *Set) {
	t.Helper()
	for _, words := range [][]uint64{set.coded.samples.words, set.coded.grams.words} {
		for i := range words {
			words[i] = ^uint64(0)
		}
	}
	for _, p := range set.encodings {
		encoded := bytes.Split(p.text, []byte{separator})[1]
		hit := string(encoded[:min(len(encoded), p.widest)])
		for before := range 3 * p.widest {
			text := []byte(strings.Repeat("#", before) + hit + "####")
			first := -1
			set.findCoded(text, []*patterns{p}, func(from, _ int) {
				if first < 0 {
					first = from
				}
			})
			if first != before {
				t.Fatalf("%q behind %d other symbols was found at %d, want %d", hit, before, first, before)
			}
		}
	}
}
