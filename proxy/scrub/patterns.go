package scrub

import (
	"bytes"
	"hash/maphash"
	"slices"
	"sort"
)

// patterns is the encodings in one alphabet, prepared for a search that ignores the
// case of letters: servers that fold case echo secrets too. All symbols in it are in
// lower case.
type patterns struct {
	seed    maphash.Seed
	window  int              // how many symbols a fragment has
	widest  int              // window, or one more in base64 and base32: see encoding.fragment
	windows map[uint64]int32 // where each fragment is in text, by its hash
	whole   map[string]struct{}
	lengths []int // of whole, each once
	filter  bloomFilter
	quads   bloomFilter // of runs of four symbols
	text    []byte      // the long encodings, between separators
	heads   [][]byte
	longest int // length of the longest beginning that is no hit yet
	most    int // length of the longest hit
	stride  int // how far apart symbols are sampled

	// A hit that may begin or continue at the end of a piece is looked up by its
	// first one and two symbols before it is searched for.
	any              [256]bool // symbols of some encoding
	oneIn, oneHead   [256]bool
	pairIn, pairHead []uint64
}

// separator separates encodings, and replaces symbols that no encoding contains.
const separator = 0xff

// encoding is one encoding of one secret.
type encoding struct {
	symbols []byte
	short   bool // the secret is shorter than Window, and matches only as a whole
	bits    int  // bits of the secret per symbol: 6 in base64, 5 in base32, 0 if bytes are not split
	bit     int  // the bit of the secret with which the first symbol begins
}

// fragment returns how many symbols from i on are a hit. Twenty characters of base64,
// or 24 of base32, that begin with a byte encode fifteen bytes: one too few.
func (n *encoding) fragment(i, window int) int {
	if n.bits > 0 && (n.bit+n.bits*i)%8 == 0 {
		return window + 1
	}
	return window
}

func prepare(window int, encodings []encoding) patterns {
	p := patterns{seed: maphash.MakeSeed(), window: window, widest: window, whole: map[string]struct{}{},
		pairIn: make([]uint64, 1<<16/64), pairHead: make([]uint64, 1<<16/64), text: []byte{separator}}
	total := 0
	for _, n := range encodings {
		total += len(n.symbols)
	}
	p.windows = make(map[uint64]int32, total)
	p.filter, p.quads = newBloomFilter(total, 32), newBloomFilter(total, 8)
	for _, n := range encodings {
		p.add(n)
	}
	slices.SortFunc(p.heads, bytes.Compare)
	p.stride = p.shortest() - gramSize + 1
	return p
}

func (p *patterns) add(enc encoding) {
	n := bytes.ToLower(enc.symbols)
	p.heads = append(p.heads, n)
	for _, of := range n {
		for _, c := range cases(of) {
			p.any[c] = true
		}
	}
	for _, c := range cases(n[0]) {
		p.oneHead[c] = true
	}
	setPair(p.pairHead, n)
	for i := 0; i+gramSize <= len(n); i++ {
		p.filter.add(n[i:])
	}
	if enc.short || len(n) <= p.window {
		p.longest = max(p.longest, len(n)-1)
		p.whole[string(n)] = struct{}{}
		p.most = max(p.most, len(n))
		if !slices.Contains(p.lengths, len(n)) {
			p.lengths = append(p.lengths, len(n))
		}
		return
	}
	if enc.bits > 0 {
		p.widest = p.window + 1
	}
	p.longest, p.most = max(p.longest, p.widest-1), max(p.most, p.widest)
	for i := range n {
		for _, c := range cases(n[i]) {
			p.oneIn[c] = true
		}
		if i+4 <= len(n) {
			p.quads.addShort(n[i:])
		}
		if i+1 < len(n) {
			setPair(p.pairIn, n[i:])
		}
		if to := i + enc.fragment(i, p.window); to <= len(n) {
			p.windows[maphash.Bytes(p.seed, n[i:to])] = int32(len(p.text) + i) //nolint:gosec // some megabytes at most
		}
	}
	p.text = append(append(p.text, n...), separator)
}

// shortest returns the length of the shortest hit; 0 without encodings.
func (p *patterns) shortest() int {
	if len(p.heads) == 0 {
		return 0
	}
	return slices.Min(append([]int{p.window}, p.lengths...))
}

// find calls hit for all windows and short encodings in the symbols: once for those in a row that
// continue each other.
func (p *patterns) find(symbols []byte, hit func(from, to int)) {
	if len(p.heads) == 0 {
		return
	}
	// Every hit is long enough to contain one of the sampled runs, and all other runs of
	// it are in the filter too. Fragments that are too short end here.
	for i := 0; ; {
		if i = p.filter.next(symbols, i, p.stride); i+gramSize > len(symbols) {
			return
		}
		first, last := p.filter.run(symbols, i, p.stride)
		at := first
		for at <= i && at+p.stride-1 <= last {
			at = p.matchAt(symbols, at, hit)
		}
		if at > i { // no other hit begins before at
			i = at + p.stride - 1
		} else if i += p.stride; last < i-1 { // no hit contains the run at last+1
			i = last + 1 + p.stride
		}
	}
}

// matchAt calls hit for what begins at symbols[i]: a window with all that continues it, and the
// short encodings. It returns the next index at which a hit may begin that is not in these.
func (p *patterns) matchAt(symbols []byte, i int, hit func(from, to int)) int {
	var room [maxHit]byte
	at := lower(room[:0], symbols[i:min(len(symbols), i+p.most)])
	next := i + 1
	for n := p.window; n <= p.widest && n <= len(at); n++ {
		if place, ok := p.windows[maphash.Bytes(p.seed, at[:n])]; ok && bytes.HasPrefix(p.text[place:], at[:n]) {
			to := i + n
			for _, c := range p.text[int(place)+n:] {
				if c == separator || to == len(symbols) || foldedCase[symbols[to]] != c {
					break
				}
				to++
			}
			hit(i, to)
			next = max(next, to-p.most+1)
		}
	}
	for _, n := range p.lengths {
		if n <= len(at) {
			if _, ok := p.whole[string(at[:n])]; ok {
				hit(i, i+n)
			}
		}
	}
	return next
}

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
	for run < min(p.widest-1, len(symbols)) {
		at := len(symbols) - run - 1
		if !p.oneIn[symbols[at]] || run > 0 && !hasPair(p.pairIn, symbols[at:]) || run >= 3 &&
			!p.quads.hasShort(symbols[at:]) {
			break
		}
		run++
	}
	if run >= minHeldRun {
		folded = lower(room[:0], symbols)
		for run >= minHeldRun && !bytes.Contains(p.text, folded[len(folded)-run:]) {
			run--
		}
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

// maxHit is the length of the longest hit: 32 digits of hexadecimal, or a short secret
// behind a part of its user name in base64.
const maxHit = 64

// lower appends symbols to room in lower case.
func lower(room, symbols []byte) []byte {
	for _, c := range symbols {
		if c-'A' <= 'Z'-'A' {
			c += 'a' - 'A'
		}
		room = append(room, c)
	}
	return room
}

// foldedCase has every byte in lower case.
var foldedCase = func() (folded [256]byte) {
	for c := range folded {
		folded[c] = lower(nil, []byte{byte(c)})[0]
	}
	return folded
}()

// setPair adds the first two symbols of s in either case.
func setPair(set []uint64, s []byte) {
	for _, first := range cases(s[0]) {
		for _, second := range cases(s[1]) {
			n := uint(first)<<8 | uint(second)
			set[n/64] |= 1 << (n % 64)
		}
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
