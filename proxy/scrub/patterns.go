package scrub

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"slices"
	"sort"
)

// patterns is one alphabet's needles, prepared for search.
type patterns struct {
	window  int // how many symbols a fragment has
	widest  int // window, or one more in base64: see needle.fragment
	windows map[string]struct{}
	whole   map[string]struct{}
	lengths []int // of whole, each once
	grams   grams
	text    []byte // the long needles, between separators
	heads   [][]byte
	longest int // of the beginnings that are no hit yet
	stride  int // how far apart symbols are sampled

	// What may begin or go on at the end of a piece is looked up by its first
	// one and two symbols before anything is searched for.
	oneIn, oneHead   [256]bool
	pairIn, pairHead []uint64
}

// separator stands between needles and for symbols that no needle holds.
const separator = 0xff

// needle is one form of one secret.
type needle struct {
	symbols []byte
	short   bool // of a secret shorter than Window: matches whole only
	base64  bool
	bit     int // of base64: the bit of the secret that the first symbol begins with
}

// fragment is how many symbols from i on are a hit. Twenty characters of
// base64 that begin with a byte are fifteen bytes: one too few.
func (n *needle) fragment(i, window int) int {
	if n.base64 && (n.bit+6*i)%8 == 0 {
		return window + 1
	}
	return window
}

func prepare(window int, needles []needle) patterns {
	p := patterns{window: window, widest: window, windows: map[string]struct{}{}, whole: map[string]struct{}{},
		pairIn: make([]uint64, 1<<16/64), pairHead: make([]uint64, 1<<16/64), text: []byte{separator}}
	total := 0
	for _, n := range needles {
		total += len(n.symbols)
	}
	p.grams = newGrams(total)
	for _, n := range needles {
		p.add(n)
	}
	slices.SortFunc(p.heads, bytes.Compare)
	p.stride = p.shortest() - gram + 1
	return p
}

func (p *patterns) add(form needle) {
	n := form.symbols
	p.heads = append(p.heads, n)
	p.oneHead[n[0]] = true
	setPair(p.pairHead, n)
	for i := 0; i+gram <= len(n); i++ {
		p.grams.note(n[i:])
	}
	if form.short || len(n) <= p.window {
		p.longest = max(p.longest, len(n)-1)
		p.whole[string(n)] = struct{}{}
		if !slices.Contains(p.lengths, len(n)) {
			p.lengths = append(p.lengths, len(n))
		}
		return
	}
	if form.base64 {
		p.widest = p.window + 1
	}
	p.longest = max(p.longest, p.widest-1)
	for i := range n {
		p.oneIn[n[i]] = true
		if i+1 < len(n) {
			setPair(p.pairIn, n[i:])
		}
		if to := i + form.fragment(i, p.window); to <= len(n) {
			p.windows[string(n[i:to])] = struct{}{}
		}
	}
	p.text = append(append(p.text, n...), separator)
}

// shortest is how many symbols the shortest hit has; 0 without needles.
func (p *patterns) shortest() int {
	if len(p.heads) == 0 {
		return 0
	}
	return slices.Min(append([]int{p.window}, p.lengths...))
}

// find calls hit for every window and short needle in the symbols.
func (p *patterns) find(symbols []byte, hit func(from, to int)) {
	if len(p.heads) == 0 {
		return
	}
	// Every hit is long enough to hold one of the sampled runs.
	done := 0
	for i := 0; i+gram <= len(symbols); i += p.stride {
		if !p.grams.has(symbols[i:]) {
			continue
		}
		first, last := max(done, i-p.stride+1, 0), i
		for at := first; at <= last; at++ {
			p.match(symbols, at, hit)
		}
		done = last + 1
	}
}

// match calls hit for the window and the short needles at symbols[i].
func (p *patterns) match(symbols []byte, i int, hit func(from, to int)) {
	if !p.grams.has(symbols[i:]) {
		return
	}
	for n := p.window; n <= p.widest && i+n <= len(symbols); n++ {
		if _, ok := p.windows[string(symbols[i:i+n])]; ok {
			hit(i, i+n)
		}
	}
	for _, n := range p.lengths {
		if i+n <= len(symbols) {
			if _, ok := p.whole[string(symbols[i:i+n])]; ok {
				hit(i, i+n)
			}
		}
	}
}

// open is how many of the last symbols are a run of a long needle, and how
// many are the beginning of any needle.
func (p *patterns) open(symbols []byte) (run, head int) {
	// The end of a run of a needle is a run of it too, so the first length
	// that is none ends the search.
	for run < min(p.widest-1, len(symbols)) {
		tail := symbols[len(symbols)-run-1:]
		if !p.oneIn[tail[0]] || run > 0 && (!hasPair(p.pairIn, tail) || !bytes.Contains(p.text, tail)) {
			break
		}
		run++
	}
	for n := min(p.longest, len(symbols)); n > 0; n-- {
		tail := symbols[len(symbols)-n:]
		if !p.oneHead[tail[0]] || n > 1 && !hasPair(p.pairHead, tail) {
			continue
		}
		at := sort.Search(len(p.heads), func(i int) bool { return bytes.Compare(p.heads[i], tail) >= 0 })
		if at < len(p.heads) && bytes.HasPrefix(p.heads[at], tail) {
			return run, n
		}
	}
	return run, 0
}

func setPair(set []uint64, s []byte) {
	n := uint(s[0])<<8 | uint(s[1])
	set[n/64] |= 1 << (n % 64)
}

func hasPair(set []uint64, s []byte) bool {
	n := uint(s[0])<<8 | uint(s[1])
	return set[n/64]&(1<<(n%64)) != 0
}

// gram is what the filters look at: no needle may be shorter.
const gram = 8

// grams is a bitmap over the hashes of all runs of 8 bytes in some needles.
type grams struct {
	bitmap []uint64
	shift  uint
}

// newGrams makes room for n runs: few of its bits are set, two for a run,
// and the map of many secrets still fits a processor's second cache.
func newGrams(n int) grams {
	size := min(max(bits.Len(uint(n))+7, 15), 21)
	return grams{bitmap: make([]uint64, 1<<size/64), shift: uint(64 - size)}
}

func (g *grams) note(at []byte) {
	h := binary.LittleEndian.Uint64(at) * spread
	first, second := h>>g.shift, h<<second>>g.shift
	g.bitmap[first/64] |= 1 << (first % 64)
	g.bitmap[second/64] |= 1 << (second % 64)
}

// bit is the first of the two bits, in the lowest place.
func (g *grams) bit(at []byte) uint64 {
	h := binary.LittleEndian.Uint64(at) * spread >> (g.shift & 63)
	return g.bitmap[h/64] >> (h % 64)
}

func (g *grams) has(at []byte) bool {
	h := binary.LittleEndian.Uint64(at) * spread
	first := h >> g.shift
	if g.bitmap[first/64]&(1<<(first%64)) == 0 {
		return false
	}
	second := h << second >> g.shift
	return g.bitmap[second/64]&(1<<(second%64)) != 0
}

// second is where in the product the second bit is looked up.
const second = 20

// spread is 2^64 divided by the golden ratio.
const spread = 0x9e3779b97f4a7c15
