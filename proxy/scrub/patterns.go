package scrub

import (
	"bytes"
	"slices"
)

// patterns is the encodings in one alphabet, prepared for a search that ignores the
// case of letters: servers that fold case echo secrets too. All symbols in it are in
// lower case.
type patterns struct {
	window  int           // how many symbols a fragment has
	widest  int           // window, or one more in base64 and base32: see encoding.fragment
	windows windowTable   // of the fragments in text
	lengths []int         // of encodings that are a hit only as a whole, each once
	whole   []windowTable // these, for each length
	filter  sieve
	quads   bloomFilter // of runs of quadSize symbols
	text    []byte      // the encodings, between separators
	heads   [][]byte
	longest int // length of the longest beginning that is no hit yet
	most    int // length of the longest hit

	// A hit that may begin or continue at the end of a piece is looked up by its
	// first one and two symbols before it is searched for.
	any              [256]bool // symbols of some encoding
	oneIn, oneHead   [256]bool
	pairIn, pairHead []uint64
}

// quadSize is the length of the runs in patterns.quads: no encoding is shorter.
const quadSize = 4

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

// prepare returns the patterns of these encodings, and adds them to filter.
func prepare(window int, encodings []encoding, filter sieve) patterns {
	p := patterns{window: window, widest: window, filter: filter,
		pairIn: make([]uint64, 1<<16/64), pairHead: make([]uint64, 1<<16/64), text: []byte{separator}}
	total := symbolsOf(encodings)
	p.windows, p.quads = newWindowTable(total), newBloomFilter(total, 32)
	for _, n := range encodings {
		p.add(n, len(encodings))
	}
	slices.SortFunc(p.heads, bytes.Compare)
	p.filter.least = p.shortest()
	for _, set := range []*[256]bool{&p.any, &p.oneIn, &p.oneHead} {
		addUpperCase(set)
	}
	addPairs(p.pairIn)
	addPairs(p.pairHead)
	return p
}

// symbolsOf returns how many symbols the encodings have.
func symbolsOf(encodings ...[]encoding) (n int) {
	for _, all := range encodings {
		for _, enc := range all {
			n += len(enc.symbols)
		}
	}
	return n
}

// add adds one of so many encodings, whose symbols it converts to lower case.
func (p *patterns) add(enc encoding, total int) {
	n := lower(enc.symbols[:0], enc.symbols)
	p.heads = append(p.heads, n)
	for i := 0; i+quadSize <= len(n); i++ {
		p.quads.addShort(n[i:])
	}
	for _, c := range n {
		p.any[c] = true
	}
	p.oneHead[n[0]] = true
	setPair(p.pairHead, n)
	p.filter.add(n)
	if enc.short || len(n) <= p.window {
		p.longest = max(p.longest, len(n)-1)
		place := len(p.text)
		p.text = append(append(p.text, n...), separator)
		p.most = max(p.most, len(n))
		k := slices.Index(p.lengths, len(n))
		if k < 0 {
			k, p.lengths, p.whole = len(p.lengths), append(p.lengths, len(n)), append(p.whole, newWindowTable(total))
		}
		p.whole[k].add(p.text, place, len(n), false)
		return
	}
	if enc.bits > 0 {
		p.widest = p.window + 1
	}
	p.longest, p.most = max(p.longest, p.widest-1), max(p.most, p.widest)
	text := len(p.text)
	p.text = append(append(p.text, n...), separator)
	for i, c := range n {
		p.oneIn[c] = true
		if i+1 < len(n) {
			setPair(p.pairIn, n[i:])
		}
		if to := i + enc.fragment(i, p.window); to <= len(n) {
			p.windows.add(p.text, text+i, to-i, to-i > p.window)
		}
	}
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
	for at, known := 0, 0; ; {
		if at, known = p.filter.next(symbols, at, known); at == len(symbols) {
			return
		}
		at = p.matchAt(symbols, at, hit)
	}
}

// findCoded is find for several of the encodings, which share a filter: each run of symbols is looked up once.
func (s *Set) findCoded(symbols []byte, encodings []*patterns, hit func(from, to int)) {
	for at := 0; ; at++ {
		var end int // of the runs of gramSize symbols that are in the filter, from at on
		if at, end = s.coded.next(symbols, at, 0); at == len(symbols) {
			return
		}
		for end+gramSize <= len(symbols) && s.coded.contains(symbols[end:]) {
			end++
		}
		for _, p := range encodings {
			last := p.filter.least - quadSize
			for i := at; i <= end-1+gramSize-p.filter.least; {
				// Most runs are of another encoding. All hits that begin from here on to the quad contain it.
				if quad := i + last; !p.quads.hasShort(symbols[quad:]) {
					i = quad + 1
					continue
				}
				i = p.matchAt(symbols, i, hit)
			}
		}
		at = end // which no hit contains
	}
}

// matchAt calls hit for what begins at symbols[i]: a window with all that continues it, and the
// short encodings. It returns the next index at which a hit may begin that is not in these.
func (p *patterns) matchAt(symbols []byte, i int, hit func(from, to int)) int {
	at := symbols[i:min(len(symbols), i+p.most)]
	next := i + 1
	for n := p.window; n <= p.widest && n <= len(at); n++ {
		if place := p.windows.find(p.text, at[:n], n > p.window); place > 0 {
			to := i + n
			for _, c := range p.text[place+n:] {
				if c == separator || to == len(symbols) || foldedCase[symbols[to]] != c {
					break
				}
				to++
			}
			hit(i, to)
			next = max(next, to-p.most+1)
		}
	}
	for k, n := range p.lengths {
		if n <= len(at) && p.whole[k].find(p.text, at[:n], false) > 0 {
			hit(i, i+n)
		}
	}
	return next
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
