package scrub

import "math/bits"

// unescapeToken searches the token data[from:to] with one and with two layers of escapes decoded.
//
// Most escapes are those of bytes that are in no encoding of a secret, such as a quotation
// mark. No hit extends over one, so they cut the token into segments, and only a segment
// that contains an escape of another byte is decoded. This holds if no secret contains a
// byte that begins an escape; otherwise a hit may contain any of them as it is.
func (s *Scanner) unescapeToken(from, to int) {
	if !s.set.plain {
		if s.number(inEscape, from, to) > 0 {
			s.unescapeAll(from, to)
		}
		s.segments(inEquals, from, to, s.unquoteSegment)
		return
	}
	s.segments(inEscape, from, to, s.unescapeSegment)
	s.segments(inEquals, from, to, s.unquoteSegment)
}

// segments calls decode for the segments of data[from:to] that need to be decoded, by the
// escapes that begin with bytes of class k. It returns where the segment ended.
func (s *Scanner) segments(k, from, to int, decode func(from, to int) int) {
	separates := &s.set.separates
	start, last, word := from, from, 0
	for i := s.next(k, from, to); i < to; {
		c, n := escape(s.data[i:to])
		next := s.next(k, i+n, to)
		live := false
		switch {
		case n == 1:
		case separates[c] && !interrupted(s.data[i:to], n):
			// In another syntax the escape may be none, and a hit begin in it.
			start, last, word = i+1, i+n, 0
		case classOf[c]&blank != 0:
			// A line end, or a soft one, between encodings that are long enough together.
			if i > last {
				word = i - last
			}
			live, last = s.data[i] == '=' || next > i+n && word+next-i-n >= s.set.leastToken, i+n
		default:
			live = true
		}
		if i = next; !live {
			continue
		}
		if i = decode(start, to); i < to {
			_, n = escape(s.data[i:to])
			start, last, word = i+1, i+n, 0
			i = s.next(k, last, to)
		}
	}
}

// next returns the index of the first byte of class k in data[from:to] that may begin an escape, by
// the byte behind it, or to.
func (s *Scanner) next(k, from, to int) int {
	if from >= to {
		return to
	}
	data, b := s.data[:to], from/blockSize
	for m := s.masks[b][k] &^ (1<<(from%blockSize) - 1); ; m = s.masks[b][k] {
		for ; m != 0; m &= m - 1 {
			i := b*blockSize + bits.TrailingZeros64(m)
			if i+1 >= to {
				return to
			}
			if follows[data[i+1]]&traits[data[i]] != 0 {
				return i
			}
		}
		if b++; b*blockSize >= to {
			return to
		}
	}
}

// unquoteSegment searches data[from:to], up to the first separator, with quoted-printable
// decoded. It returns where that is.
func (s *Scanner) unquoteSegment(from, to int) int {
	to = from + s.once.decode(s.data[from:to], inQuoted, &s.set.separates)
	s.searchLayers(from, to, &s.once)
	return to
}

// unescapeSegment searches data[from:to], up to the first separator, with the escapes of all
// syntaxes decoded. A hit that is written in one of them has no escapes of the others in
// it, so that each byte of it is decoded all the same, except where an escape of another
// syntax seems to end in it.
func (s *Scanner) unescapeSegment(from, to int) int {
	to = from + s.once.decode(s.data[from:to], anywhere, &s.set.separates)
	mixed := s.once.mixed()
	if mixed && s.ambiguous(&s.once) {
		s.unescapeAll(from, to)
		return to
	}
	s.searchLayers(from, to, &s.once)
	if s.once.starts&anywhere == 0 {
		return to
	}
	if s.twice.decode(s.once.symbols, anywhere, nil); s.twice.undone == 0 {
		return to
	}
	if (mixed || s.twice.mixed()) && s.ambiguous(&s.twice) || mixed && s.ambiguousTwice() {
		s.unescapeAll(from, to)
		return to
	}
	s.searchLayers(from, to, &s.once, &s.twice)
	return to
}

// ambiguous reports whether a hit may begin in an escape of l and continue behind it: nine
// bytes of an escape at most can be in a hit as they are, and so at least seven symbols
// follow its last byte.
func (s *Scanner) ambiguous(l *layer) bool {
	for _, e := range l.ends {
		if s.beginsWith(e.before, e.last, l.symbols[e.at:]) {
			return true
		}
	}
	return false
}

// ambiguousTwice is ambiguous for the escapes of the first layer and the symbols of the second
// behind them, as for \n in front of i&amp;#110;e.
func (s *Scanner) ambiguousTwice() bool {
	var room [2 * gramSize]byte
	for _, e := range s.once.ends {
		symbols := append(room[:0], s.once.symbols[e.at])
		for src := s.once.symbols[e.at+1:]; len(src) > 0 && len(symbols) < len(room); {
			c, n := src[0], 1
			if traits[c]&anywhere != 0 {
				c, n = escape(src)
			}
			symbols, src = append(symbols, c), src[n:]
		}
		if s.beginsWith(e.before, e.last, symbols) {
			return true
		}
	}
	return false
}

// beginsWith reports whether a hit may begin with the last bytes of an escape, which encodes
// symbols[0], and the symbols behind it. If the last byte is what the escape encodes, as in %37, the
// hit is found without the byte before it, or that is in it too. The second backslash of two may
// begin an escape itself.
func (s *Scanner) beginsWith(before, last byte, symbols []byte) bool {
	var gram [gramSize]byte
	first := append(gram[:0], last)
	set := s.set
	switch rest := symbols[1:]; {
	case last == '\\':
		c, n := escape(symbols)
		if n == 1 {
			return false
		}
		first[0], symbols = c, symbols[n:]
	case !set.text.any[last] && !set.base64.any[last] && !set.base32.any[last] && !set.hex.any[last]:
		return false
	case foldedCase[last] == foldedCase[symbols[0]]:
		first[0], symbols = before, rest
		first = append(first, last)
	default:
		symbols = rest
	}
	return len(first)+copy(gram[len(first):], symbols) == gramSize &&
		(set.text.filter.contains(gram[:]) || set.coded.contains(gram[:]))
}

// doubtIn extends the part of the data that must be searched with the escapes of each syntax
// decoded apart by every place where a hit may begin in an escape of v, as ambiguous says. The
// last byte of an escape of two layers may be one of the data or of the layer between.
func (s *Scanner) doubtIn(v *view) {
	for _, e := range v.ends {
		if s.beginsWith(e.before, e.last, v.symbols[e.at:]) {
			s.addDoubt(v, e.at)
		}
	}
	for _, j := range v.jumps {
		if j.to-j.from > 1 && s.beginsWith(s.data[j.to-2], s.data[j.to-1], v.symbols[j.at:]) {
			s.addDoubt(v, int(j.at))
		}
	}
}

// addDoubt adds the surroundings of symbol i of v to what must be searched apart.
func (s *Scanner) addDoubt(v *view, i int) {
	from, to := max(0, int(v.begin(i))-margin), int(v.end(min(len(v.symbols)-1, i+maxHit)))
	if s.doubt.to == 0 {
		s.doubt.from = from
	}
	s.doubt.from, s.doubt.to = min(s.doubt.from, from), max(s.doubt.to, to)
}

// unescapeAll searches data[from:to] with the escapes of each syntax decoded, and with those
// of all, in one layer and in two.
func (s *Scanner) unescapeAll(from, to int) {
	s.apart = true
	defer func() { s.apart = false }()
	src := s.data[from:to]
	outer := startsIn(src)
	for _, f := range combinations {
		if !f.among(outer, true) {
			continue
		}
		if s.once.decode(src, f, nil); s.once.undone == 0 {
			continue
		}
		s.searchLayers(from, to, &s.once)
		for _, g := range combinations {
			if !g.among(s.once.starts, true) {
				continue
			}
			if s.twice.decode(s.once.symbols, g, nil); s.twice.undone != 0 {
				s.searchLayers(from, to, &s.once, &s.twice)
			}
		}
	}
}

// combinations are the families that are decoded at once.
var combinations = [...]family{inURL, inJSON, inHTML, anywhere}

// among reports whether f is worth decoding in what contains escapes of these families, which
// are decoded apart or not.
func (f family) among(present family, apart bool) bool {
	present &= anywhere
	if !apart {
		return present != 0 && f == anywhere
	}
	return present&f != 0 && (f != anywhere || present&(present-1) != 0)
}
