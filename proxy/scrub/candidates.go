package scrub

import (
	"bytes"
	"slices"
)

// Most data hold no trace of a secret, and no escape that could hide one. This
// file finds the few places where one may be, at the speed of memory; only
// they, with what stands around them, are decoded and searched.

// kind says what a block may hold.
type kind uint8

const (
	sampled kind = 1 << iota // a run of a needle as it is
	escaped                  // an escape
	broken                   // a break between base64 characters
	dumped                   // hexadecimal digits
)

// blockSize is how finely candidates are told apart. A candidate takes the
// blocks before and behind it along, and so all of a hit that it is part of:
// the rest of the hit is candidates too, or less than a block.
const blockSize = 64

// context is how far back from the end of the data a beginning can reach
// that is no hit yet: 31 digits with the largest gaps.
const context = 320

// classes of bytes, as bits.
const (
	hexDigit = 1 << iota
	hexDump  // a digit, or what dumps put between them
	base64Char
	blank
	nameStart // what may follow & in an entity
	decimalDigit
	decimalGap // what may stand between the numbers of an array
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

// spot notes a candidate at data[i].
func (s *Scanner) spot(i int, k kind) {
	b := i / blockSize
	s.blocks[b+1] |= k
	s.blocks[b] |= k
	s.blocks[b+2] |= k
}

// survey notes every candidate in data. blocks[b+1] is block b's kinds.
func (s *Scanner) survey() {
	data := s.data
	n := len(data)/blockSize + 3
	s.blocks = slices.Grow(s.blocks[:0], n)[:n]
	clear(s.blocks)
	s.surveyGrams()
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
		s.spot(end, broken)
	}
	s.surveyDigits()
}

func (s *Scanner) surveyGrams() {
	data, stride, g := s.data, s.set.stride, &s.set.sample
	i := 0
	if stride == usualStride {
		i = s.surveyUsual()
	}
	for ; i+3*stride+gram <= len(data); i += 4 * stride {
		// Four at a time: hits are rare, and their loads do not wait for each other.
		if (g.bit(data[i:])|g.bit(data[i+stride:])|g.bit(data[i+2*stride:])|g.bit(data[i+3*stride:]))&1 == 0 {
			continue
		}
		for at := i; at < i+4*stride; at += stride {
			if g.has(data[at:]) {
				s.spot(at, sampled|broken)
			}
		}
	}
	for ; i+gram <= len(data); i += stride {
		if g.has(data[i:]) {
			s.spot(i, sampled|broken)
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
			s.spot(i, k)
		}
	}
}

// backslashed leaves out the escapes that every JSON text has and that no
// secret's needs: \" and \n.
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
		s.spot(i, broken)
		return true
	case 'u', 'U', 'x', 'X', '/', '\\':
		return true
	}
	return false
}

// between tells whether the line end at i, or what stands for one, has base64
// on both sides, as far as is known.
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

// surveyDigits looks at two bytes in every shortest dump: they and what is
// between them must all be of a dump. The one in the middle is asked first,
// and without a branch: most data fail there.
func (s *Scanner) surveyDigits() {
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
			s.spot(i-stride, dumped)
			s.spot(i, dumped)
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
			s.spot(i, dumped)
		}
		s.spot(len(data)-1, dumped)
	}
}

// manyDigits tells whether the dump at data[i] has as many digits as the
// shortest hit.
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
