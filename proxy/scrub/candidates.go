package scrub

import (
	"bytes"
	"slices"
)

// Most data contain no part of a secret, and no escape that could hide one. This
// file finds the few candidates, at the speed of memory; only they, with their
// surroundings, are decoded and searched.

// kind is a set of reasons for which a block is a candidate.
type kind uint8

const (
	sampled kind = 1 << iota // a run of an encoding as it is
	escaped                  // an escape
	broken                   // a break between base64 characters
	dumped                   // hexadecimal digits
)

// blockSize is the granularity of candidates. A candidate includes the blocks
// before and after it, and so the whole hit that it is part of: the rest of the
// hit consists of candidates too, or is shorter than a block.
const blockSize = 64

// context is how far back from the end of the data the longest incomplete hit can
// begin: 31 digits with the largest gaps.
const context = 320

// classes of bytes, as bits.
const (
	hexDigit = 1 << iota
	hexDump  // a digit, or a separator of dumps
	base64Char
	blank
	nameStart // may follow & in an entity
	decimalDigit
	decimalGap // may separate the numbers of an array
)

var classOf = func() (c [256]uint8) {
	for b := range c {
		letter := b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z'
		digit := b >= '0' && b <= '9'
		if digit {
			c[b] |= decimalDigit
		}
		if bytes.IndexByte([]byte(decimalGaps), byte(b)) >= 0 {
			c[b] |= decimalGap
		}
		if isHex(byte(b)) {
			c[b] |= hexDigit | hexDump
		}
		if b == 'x' || b == 'X' || b == '%' || bytes.IndexByte([]byte(hexGaps), byte(b)) >= 0 {
			c[b] |= hexDump
		}
		if letter || digit || b == '+' || b == '/' || b == '-' || b == '_' || b == '=' || b == '\\' || b == '%' || b == '&' ||
			b == ';' {
			c[b] |= base64Char
		}
		if b == ' ' || b == '\t' || b == '\r' || b == '\n' {
			c[b] |= blank
		}
		if letter || b == '#' {
			c[b] |= nameStart
		}
	}
	return c
}()

// addCandidate records a candidate at data[i].
func (s *Scanner) addCandidate(i int, k kind) {
	b := i / blockSize
	s.blocks[b+1] |= k
	s.blocks[b] |= k
	s.blocks[b+2] |= k
}

// prefilter records every candidate in data. blocks[b+1] has the kinds of block b.
func (s *Scanner) prefilter() {
	data := s.data
	n := len(data)/blockSize + 3
	s.blocks = slices.Grow(s.blocks[:0], n)[:n]
	clear(s.blocks)
	s.prefilterSamples()
	s.each('%', func(i int) bool { return i+1 >= len(data) || classOf[data[i+1]]&hexDigit != 0 || data[i+1]|0x20 == 'u' },
		escaped)
	s.each('&', func(i int) bool { return i+1 >= len(data) || classOf[data[i+1]]&nameStart != 0 }, escaped)
	s.each('=', func(i int) bool {
		return i+1 >= len(data) || data[i+1] == '\r' || data[i+1] == '\n' ||
			classOf[data[i+1]]&hexDigit != 0 && (i+2 >= len(data) || classOf[data[i+2]]&hexDigit != 0)
	}, escaped)
	s.each('\\', s.backslashed, escaped)
	s.each('\n', s.between, broken)
	if end := len(bytes.TrimRight(data, " \t\r\n")); end > 0 && end < len(data) && classOf[data[end-1]]&base64Char != 0 {
		s.addCandidate(end, broken)
	}
	s.prefilterDigits()
}

func (s *Scanner) prefilterSamples() {
	data, stride, g := s.data, s.set.stride, &s.set.sample
	i := 0
	if stride == usualStride {
		i = s.prefilterUsual()
	}
	for ; i+3*stride+gramSize <= len(data); i += 4 * stride {
		// Four at a time: hits are rare, and the four loads are independent.
		if (g.bit(data[i:])|g.bit(data[i+stride:])|g.bit(data[i+2*stride:])|g.bit(data[i+3*stride:]))&1 == 0 {
			continue
		}
		for at := i; at < i+4*stride; at += stride {
			if g.contains(data[at:]) {
				s.addCandidate(at, sampled|broken)
			}
		}
	}
	for ; i+gramSize <= len(data); i += stride {
		if g.contains(data[i:]) {
			s.addCandidate(i, sampled|broken)
		}
	}
}

func (s *Scanner) each(c byte, is func(i int) bool, k kind) {
	for i := 0; ; i++ {
		n := bytes.IndexByte(s.data[i:], c)
		if n < 0 {
			return
		}
		if i += n; is(i) {
			s.addCandidate(i, k)
		}
	}
}

// backslashed reports whether the backslash at i may escape a part of a secret. It
// excludes the escapes that every JSON text has and that no secret needs: \" and
// \n.
func (s *Scanner) backslashed(i int) bool {
	if i+1 >= len(s.data) {
		return true
	}
	switch c := s.data[i+1]; c {
	case '"', '\'':
		return s.set.quote
	case 'n', 'r', 't':
		if !s.between(i) {
			return false
		}
		s.addCandidate(i, broken)
		return true
	case 'u', 'U', 'x', 'X', '/', '\\':
		return true
	}
	return false
}

// between reports whether the line end at i, or the escape of one, has base64 on
// both sides, as far as the data show.
func (s *Scanner) between(i int) bool {
	before, after := i-1, i+1
	if s.data[i] == '\\' {
		after++
	}
	for ; before >= 0 && i-before <= maxGap && classOf[s.data[before]]&blank != 0; before-- {
	}
	for ; after < len(s.data) && after-i <= maxGap && classOf[s.data[after]]&blank != 0; after++ {
	}
	return before >= 0 && classOf[s.data[before]]&base64Char != 0 &&
		(after >= len(s.data) || classOf[s.data[after]]&base64Char != 0)
}

// prefilterDigits samples two bytes of every shortest dump: they and all bytes between
// them must belong to a dump. The one in the middle is tested first, and without a
// branch: most data fail there.
func (s *Scanner) prefilterDigits() {
	data, stride := s.data, s.set.hexStride
	before := uint8(hexDump)
next:
	for i := stride; i < len(data); i += stride {
		here := classOf[data[i]]
		all := before & here & classOf[data[i-stride/2]]
		before = here
		if all&hexDump == 0 {
			continue
		}
		for at := i - stride; at < i; at++ {
			if classOf[data[at]]&hexDump == 0 {
				continue next
			}
		}
		if s.manyDigits(i) {
			s.addCandidate(i-stride, dumped)
			s.addCandidate(i, dumped)
		}
	}
	// A dump may begin near the end.
	i, n := len(data), 0
	for ; i > 0 && len(data)-i < context && classOf[data[i-1]]&hexDump != 0; i-- {
		if classOf[data[i-1]]&hexDigit != 0 {
			n++
		}
	}
	if n > 0 {
		for ; i < len(data); i += blockSize {
			s.addCandidate(i, dumped)
		}
		s.addCandidate(len(data)-1, dumped)
	}
}

// manyDigits reports whether the dump at data[i] has as many digits as the shortest
// hit.
func (s *Scanner) manyDigits(i int) bool {
	n, least := 0, 2*s.set.hexStride
	for at := i; at < len(s.data) && at-i < context && n < least && classOf[s.data[at]]&hexDump != 0; at++ {
		n += int(classOf[s.data[at]] & hexDigit)
	}
	for at := i - 1; at >= 0 && i-at < context && n < least && classOf[s.data[at]]&hexDump != 0; at-- {
		n += int(classOf[s.data[at]] & hexDigit)
	}
	return n >= least
}
