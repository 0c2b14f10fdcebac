package scrub

import "bytes"

// dump searches a long run of the digits and separators of dumps, hexadecimal and decimal.
func (s *Scanner) dump(from, to int) {
	if s.number(inHex, from, to) < s.set.leastDigits {
		return
	}
	src, array := s.data[from:to], s.hasArray(from, to)
	s.searchDump(from, to, src, array)
	if bytes.IndexByte(src, '%') >= 0 {
		s.once.decode(src, inURL, nil)
		s.searchDump(from, to, s.once.symbols, array, &s.once)
	}
}

// searchDump searches the bytes that the numbers in src encode, which is data[from:to] or a
// layer of it, and perhaps an array of decimal ones.
func (s *Scanner) searchDump(from, to int, src []byte, array bool, layers ...*layer) {
	hit := func(a, b int) {
		a, b = s.numbers.source(a, b, len(src))
		for _, l := range layers {
			a, b = l.source(a, b, to-from)
		}
		s.addRegion(from+a, from+b)
	}
	s.numbers.hexadecimal(src, s.set.leastDigits)
	s.set.hex.find(s.numbers.symbols, hit)
	if array {
		s.numbers.decimal(src)
		s.set.text.find(s.numbers.symbols, hit)
	}
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
