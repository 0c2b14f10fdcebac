package scrub

import (
	"bytes"
	"math/bits"
	"slices"
)

// dump searches a long run of the digits and separators of dumps, hexadecimal and decimal.
func (s *Scanner) dump(from, to int) {
	if s.number(inHex, from, to) < s.set.leastDigits {
		return
	}
	src, array := s.data[from:to], s.hasArray(from, to)
	hit := func(a, b int) {
		a, b = s.numbers.source(a, b, to-from)
		s.addRegion(from+a, from+b)
	}
	if s.digits(from, to) {
		s.set.hex.find(s.numbers.symbols, hit)
	}
	s.searchArray(src, array, hit)
	if bytes.IndexByte(src, '%') < 0 || !array && s.unescapedDigits(from, to) < s.set.leastDigits {
		return
	}
	s.once.decode(src, inURL, nil, false, false)
	src = s.once.symbols
	hit = func(a, b int) {
		a, b = s.numbers.source(a, b, len(src))
		a, b = s.once.source(a, b, to-from)
		s.addRegion(from+a, from+b)
	}
	s.numbers.hexadecimal(src, s.set.leastDigits)
	s.set.hex.find(s.numbers.symbols, hit)
	s.searchArray(src, array, hit)
}

// searchArray searches the bytes that the decimal numbers in src encode, if it may be an array
// of them.
func (s *Scanner) searchArray(src []byte, array bool, hit func(from, to int)) {
	if array {
		s.numbers.decimal(src)
		s.set.text.find(s.numbers.symbols, hit)
	}
}

// unescapedDigits returns how many hexadecimal digits data[from:to] has with URL escapes decoded.
func (s *Scanner) unescapedDigits(from, to int) int {
	n, data := s.number(inHex, from, to), s.data[:to]
	for i := s.next(inEscape, from, to); i < to; {
		length := 1
		if data[i] == '%' && i+2 < to && digit[data[i+1]]|digit[data[i+2]] < 16 {
			length = 3
			if n -= 2; isHex(digit[data[i+1]]<<4 | digit[data[i+2]]) {
				n++
			}
		}
		i = s.next(inEscape, i+length, to)
	}
	return n
}

// hasArray reports whether data[from:to] contains enough digits and separators of an array
// of decimal numbers in a row.
func (s *Scanner) hasArray(from, to int) bool {
	run, before := longRuns{least: s.set.leastDigits - 1, from: -1}, uint64(0)
	for b := from / blockSize; b*blockSize < to; b++ {
		m := s.masks[b][inArray]
		if run.ends(before, m) != 0 {
			return true
		}
		before = m
	}
	return false
}

// digits decodes data[from:to] as layer.hexadecimal does, by its masks. It reports whether there are
// several groups of digits. How long a gap is does not matter here: what seems to be a hit across
// a longer one is none for the views.
func (s *Scanner) digits(from, to int) bool {
	first, last := from/blockSize, (to-1)/blockSize
	keep, groups, before := s.digitMasks[:0], 0, uint64(0)
	s.numbers.work += to - from
	for b := first; b <= last; b++ {
		part := ^uint64(0)
		if b == first {
			part <<= from % blockSize
		}
		if b == last {
			part &= ^uint64(0) >> (blockSize - 1 - (to-1)%blockSize)
		}
		m := &s.masks[b]
		digits := m[inHex] & part
		// The 0 of 0x is none. What else is no digit and in no array is one of - \ %.
		for odd := m[inDump] &^ m[inHex] &^ m[inArray] & part; odd != 0; odd &= odd - 1 {
			j := bits.TrailingZeros64(odd)
			if i := b*blockSize + j; i == from || s.data[i]|0x20 != 'x' || s.data[i-1] != '0' {
				continue
			}
			if j > 0 {
				digits &^= 1 << (j - 1)
			} else {
				keep[len(keep)-1] &^= 1 << (blockSize - 1)
			}
		}
		groups += bits.OnesCount64(digits &^ (digits<<1 | before>>63))
		keep, before = append(keep, digits), digits
	}
	if s.digitMasks = keep; groups < 2 {
		return false
	}
	s.numbers.gather(s.data, first*blockSize, keep, from)
	return true
}

// gather makes the bytes of data whose bits are set in the masks of blocks from start on the
// symbols of a layer of data[from:].
func (l *layer) gather(data []byte, start int, masks []uint64, from int) {
	l.symbols, l.marks = l.symbols[:0], l.marks[:0]
	n := 0
	for i, m := range masks {
		if i%(markEvery/blockSize) == 0 {
			l.marks = append(l.marks, mark{max(start+i*blockSize-from, 0), n})
		}
		n += bits.OnesCount64(m)
	}
	l.symbols = slices.Grow(l.symbols, n+gatherSlack)[:n+gatherSlack]
	full := min(len(masks), (len(data)-start)/blockSize)
	at := gather(l.symbols, data[start:start+full*blockSize], masks[:full])
	if full < len(masks) { // the last block of the data
		var padded [blockSize]byte
		copy(padded[:], data[start+full*blockSize:])
		gather(l.symbols[at:], padded[:], masks[full:])
	}
	l.symbols = l.symbols[:n]
}

// hexadecimal decodes src as view.digits does, but keeps only what may be least digits or
// more in several groups: those in one group are found as they are.
func (l *layer) hexadecimal(src []byte, least int) {
	l.symbols, l.marks, l.work = l.symbols[:0], l.marks[:0], l.work+len(src)
	start, groups, last := 0, 0, -markEvery
	for i, gap := 0, 0; i < len(src); {
		group := i
		for i < len(src) && classOf[src[i]]&hexDigit != 0 {
			i++
		}
		if group < i {
			digits := src[group:i]
			if i < len(src) && src[i]|0x20 == 'x' && src[i-1] == '0' {
				digits, i, gap = digits[:len(digits)-1], i+1, gap+2
			}
			if len(digits) > 0 {
				if group-last >= markEvery {
					l.marks = append(l.marks, mark{group, len(l.symbols)})
					last = group
				}
				l.symbols = append(l.symbols, digits...)
				if groups++; src[i-1]|0x20 == 'x' {
					gap = 2
				} else {
					gap = 0
				}
			}
			continue
		}
		if c := src[i]; c == '\\' && i+1 < len(src) && src[i+1]|0x20 == 'x' {
			i++
			gap += 2
		} else if gap++; c|0x20 == 'x' || c == '%' {
			gap = maxGap + 1
		}
		if i++; gap <= maxGap && i < len(src) {
			continue
		}
		if groups < 2 || len(l.symbols)-start < least {
			l.symbols = l.symbols[:start]
		} else {
			l.symbols = append(l.symbols, separator)
		}
		start, groups, gap = len(l.symbols), 0, 0
	}
}

// decimal decodes src as view.numbers does.
func (l *layer) decimal(src []byte) {
	l.symbols, l.marks, l.work = l.symbols[:0], l.marks[:0], l.work+len(src)
	gap, last := 0, -markEvery
	for i := 0; i < len(src); i++ {
		switch class := classOf[src[i]]; {
		case class&decimalDigit != 0:
			if i-last >= markEvery {
				l.marks = append(l.marks, mark{i, len(l.symbols)})
				last = i
			}
			n, value := decimal(src[i:])
			l.symbols = append(l.symbols, value)
			i += n - 1
			gap = 0
		case class&decimalGap == 0, gap == maxDecimalGap:
			l.symbols = append(l.symbols, separator)
			i = skip(src, i, decimalDigit)
			gap = 0
		default:
			gap++
		}
	}
}
