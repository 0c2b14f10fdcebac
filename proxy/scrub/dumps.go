package scrub

// dump searches a long run of the digits and separators of dumps, hexadecimal and decimal.
func (s *Scanner) dump(from, to int) {
	n := s.number(inHex, from, to)
	if n < s.set.leastDigits {
		return
	}
	for !s.is(inHex, from) {
		from++
	}
	for !s.is(inHex, to-1) {
		to--
	}
	if to-from == n {
		return // in one piece: see token
	}
	src := s.data[from:to]
	s.searchDigits(from, to, src)
	if startsIn(src)&inURL != 0 && s.once.decode(src, inURL) {
		s.searchDigits(from, to, s.once.symbols, &s.once)
	}
}

// searchDigits searches the bytes that the numbers in src encode, which is data[from:to] or
// the last of some layers of it.
func (s *Scanner) searchDigits(from, to int, src []byte, layers ...*layer) {
	var all [2]*layer
	layers = append(append(all[:0], layers...), &s.numbers)
	hit := func(a, b int) {
		a, b = s.numbers.source(a, b, len(src))
		if len(layers) > 1 {
			a, b = layers[0].source(a, b, to-from)
		}
		s.addRegion(from+a, from+b)
	}
	s.numbers.hexadecimal(src)
	s.set.hex.find(s.numbers.symbols, hit)
	s.numbers.decimal(src)
	s.set.text.find(s.numbers.symbols, hit)
}

// hexadecimal decodes src as view.digits does.
func (l *layer) hexadecimal(src []byte) {
	l.symbols, l.marks = l.symbols[:0], l.marks[:0]
	gap, last := 0, -markEvery
	for i := 0; i < len(src); i++ {
		c := src[i]
		switch {
		case (c == '0' || c == '\\') && i+1 < len(src) && src[i+1]|0x20 == 'x':
			i++
			gap += 2
		case classOf[c]&hexDigit != 0:
			if gap = 0; i-last >= markEvery {
				l.marks = append(l.marks, mark{i, len(l.symbols)})
				last = i
			}
			l.symbols = append(l.symbols, c)
		case classOf[c]&hexDump != 0 && c != 'x' && c != 'X' && c != '%':
			gap++
		default:
			gap = maxGap + 1
		}
		if gap > maxGap {
			l.symbols = append(l.symbols, separator)
			gap = 0
		}
	}
}

// decimal decodes src as view.numbers does.
func (l *layer) decimal(src []byte) {
	l.symbols, l.marks = l.symbols[:0], l.marks[:0]
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
