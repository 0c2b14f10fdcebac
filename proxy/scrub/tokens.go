package scrub

import "bytes"

// wing is how many symbols on either side of a break can be in one hit with it.
const wing = maxHit

// token searches a long run of bytes of tokens: for encodings as they are, and for what is
// behind its escapes.
func (s *Scanner) token(from, to int) {
	set := s.set
	for i := from; ; {
		if i = set.coded.next(s.data[:to], i, set.leastToken-gramSize+1); i+gramSize > to {
			break
		}
		i = s.around(i)
	}
	if s.escaped(from, to) {
		s.unescapeToken(from, to)
	}
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

// escaped reports whether data[from:to] may contain an escape.
func (s *Scanner) escaped(from, to int) bool {
	if s.number(inEscape, from, to) > 0 {
		return true
	}
	if s.number(inEquals, from, to) == 0 {
		return false
	}
	for at := s.data[from:to]; ; {
		i := bytes.IndexByte(at, '=')
		if i < 0 {
			return false
		}
		if _, n := quoted(at[i:]); n > 1 {
			return true
		}
		at = at[i+1:]
	}
}

// unescapeToken searches data[from:to] with one and with two layers of escapes decoded.
func (s *Scanner) unescapeToken(from, to int) {
	src := s.data[from:to]
	outer := startsIn(src)
	// A secret may itself contain an escape of another syntax, so each syntax is
	// decoded alone, and finally all together.
	for _, f := range combinations {
		if !f.among(outer) || !s.once.decode(src, f) {
			continue
		}
		s.searchLayers(from, to, &s.once)
		for _, g := range combinations {
			if g.among(s.once.starts) && s.twice.decode(s.once.symbols, g) {
				s.searchLayers(from, to, &s.once, &s.twice)
			}
		}
	}
	if outer&inQuoted != 0 && s.once.decode(src, inQuoted) {
		s.searchLayers(from, to, &s.once)
	}
}

// combinations are the families that are decoded at once.
var combinations = [...]family{inURL, inJSON, inHTML, anywhere}

// among reports whether f is worth decoding in what contains escapes of these families.
func (f family) among(present family) bool {
	present &= anywhere
	return present&f != 0 && (f != anywhere || present&(present-1) != 0)
}

// searchLayers searches the last of some layers, the first of which decodes data[from:to].
func (s *Scanner) searchLayers(from, to int, layers ...*layer) {
	last := layers[len(layers)-1]
	s.searchSymbols(from, to, last.symbols, layers)
	if last.starts&inBlanks != 0 {
		s.flat.join(last.symbols)
		var all [3]*layer
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
	if set.coded.next(symbols, 0, set.leastToken-gramSize+1)+gramSize > len(symbols) {
		return
	}
	set.base64.find(symbols, hit)
	set.base32.find(symbols, hit)
}

// lineEnd searches the encodings that continue after the line end at data[i].
func (s *Scanner) lineEnd(i int) {
	if i < s.until {
		return
	}
	end := i
	for end > 0 && i-end <= maxGap && s.is(inBlank, end-1) {
		end--
	}
	start := s.tokenBefore(end)
	next, right := s.tokenAfter(end, wing)
	if right == next {
		return
	}
	if end-start+right-next < s.set.leastToken &&
		!(s.lineEndAt(right) && (right-next >= gramSize || s.data[right-1] == '=')) {
		return // lines of base64 have 8 characters or more; those of quoted-printable end in =
	}
	// Short lines are searched together with the next ones.
	for right-next < wing {
		from, to := s.tokenAfter(right, wing)
		if from == to || !s.lineEndAt(right) {
			break
		}
		next, right = from, to
	}
	s.until = next
	if s.escaped(start, right) {
		s.unescapeToken(start, right)
	}
	s.flat.join(s.data[start:right])
	s.searchSymbols(start, right, s.flat.symbols, []*layer{&s.flat})
}

// is reports whether data[i] is of class k.
func (s *Scanner) is(k, i int) bool { return s.set.classes.class[s.data[i]]>>k&1 != 0 }

// lineEndAt reports whether a line end follows data[:i], perhaps behind blanks.
func (s *Scanner) lineEndAt(i int) bool {
	for i < len(s.data) && s.is(inBlank, i) {
		i++
	}
	return i < len(s.data) && s.is(inLineEnd, i)
}

// tokenBefore returns where the token that ends at data[end] begins, or wing before.
func (s *Scanner) tokenBefore(end int) int {
	i, far := end, wing
	for i > 0 && end-i < far && s.is(inToken, i-1) {
		if i--; s.is(inEscape, i) || s.is(inEquals, i) {
			far = wing * 4
		}
	}
	return i
}

// tokenAfter returns where the token behind the white space at data[i] begins, and where it
// ends, or some bytes behind its beginning.
func (s *Scanner) tokenAfter(i, far int) (from, to int) {
	for from = i; from < len(s.data) && classOf[s.data[from]]&blank != 0; from++ {
		if from-i >= maxGap {
			return i, i
		}
	}
	for to = from; to < len(s.data) && to-from < far && s.is(inToken, to); to++ {
		if s.is(inEscape, to) || s.is(inEquals, to) {
			far = wing * 4
		}
	}
	return from, to
}
