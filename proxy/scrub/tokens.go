package scrub

// wing is how many symbols on either side of a break can be in one hit with it.
const wing = maxHit

// token searches a long run of bytes of tokens: for encodings as they are, and for what is
// behind its escapes.
func (s *Scanner) token(from, to int) {
	s.sample(from, to)
	if s.anyEscape(from, to) {
		s.unescapeToken(from, to)
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
	from, to := max(0, i-groups), min(len(s.data), i+4*wing)
	s.set.hex.find(s.data[from:to], func(a, b int) { s.addRegion(from+a, from+b) })
	s.flat.join(s.data[from:to])
	hit := func(a, b int) {
		a, b = s.flat.source(a, b, to-from)
		s.addRegion(from+a, from+b)
	}
	s.set.base64.find(s.flat.symbols, hit)
	s.set.base32.find(s.flat.symbols, hit)
	return max(i+1, to-groups)
}

// searchLayers searches the last of some layers, the first of which decodes data[from:to]. Lines
// are joined behind one layer of escapes only, as in [Scanner.searchRegion].
func (s *Scanner) searchLayers(from, to int, layers ...*layer) {
	last := layers[len(layers)-1]
	s.searchSymbols(from, to, last.symbols, layers)
	if len(layers) == 1 && last.starts&inBlanks != 0 && last.undone&inQuoted == 0 {
		s.flat.join(last.symbols)
		var all [2]*layer
		s.searchSymbols(from, to, s.flat.symbols, append(append(all[:0], layers...), &s.flat))
	}
}

func (s *Scanner) searchSymbols(from, to int, symbols []byte, layers []*layer) {
	set := s.set
	if len(symbols) < set.leastToken {
		return
	}
	hit := func(a, b int) {
		for i := len(layers) - 1; i >= 0; i-- {
			size := to - from
			if i > 0 {
				size = len(layers[i-1].symbols)
			}
			a, b = layers[i].source(a, b, size)
		}
		s.addRegion(from+a, from+b)
	}
	set.text.find(symbols, hit)
	if at, _ := set.coded.next(symbols, 0, 0); at == len(symbols) {
		return
	}
	set.base64.find(symbols, hit)
	set.base32.find(symbols, hit)
}
