package scrub

// wing is how many symbols on either side of a break can be in one hit with it.
const wing = maxHit

// token searches a long run of bytes of tokens: for encodings as they are, and for what is
// behind its escapes.
func (s *Scanner) token(from, to int) {
	s.sample(from, to)
	if s.anyEscape(from, to) {
		s.unescape(from, to)
	}
	s.group(from, to)
}

// anyEscape reports whether data[from:to] contains a byte that begins escapes, of any syntax.
// Most tokens contain none.
func (s *Scanner) anyEscape(from, to int) bool {
	first, last := from/blockSize, (to-1)/blockSize
	keep := ^uint64(0) << (from % blockSize)
	for b := first; b < last; b++ {
		if m := &s.masks[b]; (m[inEscape]|m[inEquals])&keep != 0 {
			return true
		}
		keep = ^uint64(0)
	}
	m := &s.masks[last]
	return (m[inEscape]|m[inEquals])&keep&(^uint64(0)>>(blockSize-1-(to-1)%blockSize)) != 0
}

// around searches what surrounds a sample at data[i], without white space. It returns the
// index at which sampling continues.
func (s *Scanner) around(i int) int {
	const groups = wing + wing/2 // with the blanks between groups of 16
	from, to := max(0, max(i, s.surrounded)-groups), min(len(s.data), i+4*wing)
	s.surrounded = to
	s.searchHits(from, &s.set.hex, s.data[from:to], nil) // which has no blanks in it, but for dumps
	symbols, layers := s.data[from:to], []*layer(nil)
	if s.number(inBlank, from, to)+s.number(inLineEnd, from, to) > 0 {
		s.flat.join(symbols)
		symbols, layers = s.flat.symbols, []*layer{&s.flat}
	}
	s.set.findCoded(symbols, s.set.encodings[:2], s.hitIn(from, layers))
	return max(i+1, to-groups)
}

// searchLayers searches the last of some layers, the first of which decodes data[from:]. Lines
// are joined behind one layer of escapes only, as in [Scanner.searchEnd].
func (s *Scanner) searchLayers(from int, layers ...*layer) {
	last := layers[len(layers)-1]
	s.searchHits(from, &s.set.text, last.symbols, layers)
	s.searchCoded(from, last.symbols, layers)
	if len(layers) == 1 && last.starts&inBlanks != 0 && last.undone&inQuoted == 0 {
		s.flat.join(last.symbols)
		var all [2]*layer
		s.searchCoded(from, s.flat.symbols, append(append(all[:0], layers...), &s.flat))
	}
}

// searchCoded searches the symbols of the last of some layers, the first of which decodes
// data[from:], for base64, base32 and hexadecimal.
func (s *Scanner) searchCoded(from int, symbols []byte, layers []*layer) {
	s.set.findCoded(symbols, s.set.encodings[:], s.hitIn(from, layers))
}

// searchHits records what p finds in the symbols of the last of some layers.
func (s *Scanner) searchHits(from int, p *patterns, symbols []byte, layers []*layer) {
	p.find(symbols, s.hitIn(from, layers))
}

// hitIn returns what records a hit in the symbols of the last of some layers.
func (s *Scanner) hitIn(from int, layers []*layer) func(a, b int) {
	return func(a, b int) {
		for i := len(layers) - 1; i >= 0; i-- {
			a, b = layers[i].source(a, b, 0)
		}
		s.addHit(from+a, from+b)
	}
}
