package scrub

import (
	"bytes"
	"math/bits"
	"slices"
	"sort"
)

// open returns how many of the last symbols are a run of a long encoding, and how
// many are the beginning of any encoding.
func (p *patterns) open(symbols []byte) (run, head int) {
	if len(symbols) == 0 || !p.any[symbols[len(symbols)-1]] {
		return 0, 0
	}
	symbols = symbols[max(0, len(symbols)-max(p.widest-1, p.longest)):]
	var room [maxHit]byte
	var folded []byte // symbols in lower case, once the lookup by symbols does not suffice
	// The end of a run is a run too, so the first length that is none ends the
	// search. Runs of less than four symbols are not held back: pairs suffice.
	for run < min(p.widest-1, len(symbols)) && p.continues(symbols[len(symbols)-run-1:]) {
		run++
	}
	for n := min(p.longest, len(symbols)); n > 0; n-- {
		at := len(symbols) - n
		if !p.oneHead[symbols[at]] || n > 1 && !hasPair(p.pairHead, symbols[at:]) {
			continue
		}
		if n >= gramSize && !p.filter.contains(symbols[at:]) {
			continue
		}
		if folded == nil {
			folded = lower(room[:0], symbols)
		}
		tail := folded[at:]
		i := sort.Search(len(p.heads), func(i int) bool { return bytes.Compare(p.heads[i], tail) >= 0 })
		if i < len(p.heads) && bytes.HasPrefix(p.heads[i], tail) {
			return run, n
		}
	}
	return run, 0
}

// continues reports whether s may be a run of a long encoding, if all but its first symbol is one.
// It asks filters: the text of many encodings is too long to search.
func (p *patterns) continues(s []byte) bool {
	switch n := len(s); {
	case n < 2:
		return p.oneIn[s[0]]
	case !hasPair(p.pairIn, s):
		return false
	case n >= gramSize:
		return p.filter.contains(s)
	case n >= sampleSize && !p.filter.containsSample(s):
		return false
	}
	return len(s) < 4 || p.quads.hasShort(s)
}

// setPair adds the first two symbols of s.
func setPair(set []uint64, s []byte) {
	n := uint(s[0])<<8 | uint(s[1])
	set[n/64] |= 1 << (n % 64)
}

// addPairs adds every pair of a set, which is in lower case, in either case of both letters.
func addPairs(set []uint64) {
	for i, word := range slices.Clone(set) {
		for ; word != 0; word &= word - 1 {
			n := i*64 + bits.TrailingZeros64(word)
			for _, first := range cases(byte(n >> 8)) {
				for _, second := range cases(byte(n)) {
					setPair(set, []byte{first, second})
				}
			}
		}
	}
}

// addUpperCase adds the letters of a set, which is in lower case, in upper case.
func addUpperCase(set *[256]bool) {
	for c := byte('a'); c <= 'z'; c++ {
		set[c-'a'+'A'] = set[c]
	}
}

// cases returns c, which is in lower case, in either case.
func cases(c byte) [2]byte {
	if c >= 'a' && c <= 'z' {
		return [2]byte{c, c - 'a' + 'A'}
	}
	return [2]byte{c, c}
}

func hasPair(set []uint64, s []byte) bool {
	n := uint(s[0])<<8 | uint(s[1])
	return set[n/64]&(1<<(n%64)) != 0
}
