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
	to = from + s.once.decode(s.data[from:to], inQuoted, &s.set.separates, false, false)
	s.searchLayers(from, &s.once)
	return to
}

// unescapeSegment searches data[from:to], up to the first separator, with the escapes of all
// syntaxes decoded. A hit that is written in one of them has no escapes of the others in
// it, so that each byte of it is decoded all the same, except where an escape of another
// syntax seems to end in it, or to interrupt it.
func (s *Scanner) unescapeSegment(from, to int) int {
	to = from + s.once.decode(s.data[from:to], anywhere, &s.set.separates, true, s.opens(to))
	left := s.once.left
	s.unescapeTwice(from, to)
	if left {
		s.once.decode(s.data[from:to], anywhere, nil, false, s.opens(to))
		s.unescapeTwice(from, to)
	}
	return to
}

// opens reports whether more may follow data[:to].
func (s *Scanner) opens(to int) bool { return to == len(s.data) && !s.final }

// unescapeTwice searches data[from:to] as it is decoded in once, and with another layer of
// escapes decoded.
func (s *Scanner) unescapeTwice(from, to int) {
	src, once, twice := s.data[from:to], &s.once, &s.twice
	if once.undone == 0 {
		return
	}
	mixed := once.mixed()
	if mixed {
		s.searchSwallowed(from, src, once)
	}
	s.searchLayers(from, once)
	if once.starts&anywhere == 0 {
		return
	}
	if twice.decode(once.symbols, anywhere, nil, false, s.opens(to)); twice.undone == 0 {
		return
	}
	if mixed || twice.mixed() {
		s.searchSwallowed(from, src, once, twice)
	}
	s.searchLayers(from, once, twice)
}

// unescapeAll searches data[from:to] with the escapes of each syntax decoded, and with those
// of all, in one layer and in two.
func (s *Scanner) unescapeAll(from, to int) {
	src := s.data[from:to]
	outer := startsIn(src)
	for _, f := range combinations {
		if !f.among(outer) {
			continue
		}
		if s.once.decode(src, f, nil, false, s.opens(to)); s.once.undone == 0 {
			continue
		}
		s.searchLayers(from, &s.once)
		for _, g := range combinations {
			if !g.among(s.once.starts) {
				continue
			}
			if s.twice.decode(s.once.symbols, g, nil, false, s.opens(to)); s.twice.undone != 0 {
				s.searchLayers(from, &s.once, &s.twice)
			}
		}
	}
}

// combinations are the families that are decoded at once.
var combinations = [...]family{inURL, inJSON, inHTML, anywhere}

// among reports whether f is worth decoding in what contains escapes of these families.
func (f family) among(present family) bool {
	present &= anywhere
	return present&f != 0 && (f != anywhere || present&(present-1) != 0)
}
