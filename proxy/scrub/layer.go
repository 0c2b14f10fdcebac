package scrub

// A layer is a decoding of a token without the place of every symbol: only one byte in
// markEvery of the source has its place in it recorded. Most layers contain no hit, and
// are forgotten; where one does, a view of the surroundings shows where it begins and ends.
type layer struct {
	symbols []byte
	marks   []mark
	starts  family // the families that the symbols may contain escapes of
}

// mark records that what begins at from in the source begins at symbol at.
type mark struct{ from, at int }

const markEvery = 256

// traits are further families, for what a layer contains.
const (
	inQuoted family = 8 << iota // quoted-printable: it is decoded alone
	inBlanks                    // white space
)

// traits has the families whose escapes a byte begins.
var traits = [256]family{'%': inURL, '\\': inJSON, '&': inHTML, '=': inQuoted,
	' ': inBlanks, '\t': inBlanks, '\r': inBlanks, '\n': inBlanks}

// startsIn returns the families whose escapes text may contain.
func startsIn(text []byte) (f family) {
	for _, c := range text {
		f |= traits[c]
	}
	return f
}

// decode decodes one layer of the escapes of f in src. It reports whether there were any.
func (l *layer) decode(src []byte, f family) bool {
	if cap(l.symbols) < len(src) {
		l.symbols = make([]byte, len(src)+len(src)/4)
	}
	l.marks, l.starts = l.marks[:0], 0
	out, n, escapes, all := l.symbols[:len(src)], 0, false, family(0)
	for i := 0; i < len(src); {
		l.marks = append(l.marks, mark{i, n})
		for end := min(i+markEvery, len(src)); i < end; n++ {
			c := src[i]
			if traits[c]&f != 0 {
				var length int
				c, length = escape(src[i:])
				escapes = escapes || length > 1
				soft := src[i] == '=' && length > 1 && !isHex(src[i+1])
				if i += length; soft { // a soft line break is no symbol
					n--
					continue
				}
			} else {
				i++
			}
			all |= traits[c]
			out[n] = c
		}
	}
	l.symbols, l.starts = out[:n], all
	return escapes
}

// escape parses the escape at the beginning of s, as the functions of escapes.go do, if
// nothing follows s.
func escape(s []byte) (c byte, n int) {
	switch s[0] {
	case '%':
		c, n = percent(s)
	case '\\':
		c, n = backslash(s)
	case '&':
		c, n = entity(s, true)
	case '=':
		c, n = quoted(s)
	}
	if n == 0 {
		return s[0], 1
	}
	return c, n
}

// quoted parses one escape of quoted-printable, as the functions of escapes.go do.
func quoted(s []byte) (byte, int) {
	switch {
	case len(s) > 1 && s[1] == '\n':
		return '\n', 2
	case len(s) > 2 && s[1] == '\r' && s[2] == '\n':
		return '\n', 3
	case len(s) > 2 && isHex(s[1]) && isHex(s[2]):
		return unhex(s[1])<<4 | unhex(s[2]), 3
	}
	return '=', 1
}

// join removes the white space of src.
func (l *layer) join(src []byte) {
	l.symbols, l.marks = l.symbols[:0], l.marks[:0]
	gap, last := 0, -markEvery
	for i, c := range src {
		if classOf[c]&blank != 0 {
			if gap++; gap > maxGap {
				c = separator
			} else {
				continue
			}
		} else {
			gap = 0
		}
		if i-last >= markEvery {
			l.marks = append(l.marks, mark{i, len(l.symbols)})
			last = i
		}
		l.symbols = append(l.symbols, c)
	}
}

// source returns the part of the source, of size bytes, that contains symbols from to to.
func (l *layer) source(from, to, size int) (int, int) {
	first, last := 0, size
	for i := len(l.marks) - 1; i >= 0; i-- {
		if m := l.marks[i]; m.at >= to {
			last = m.from
		} else if m.at <= from {
			first = m.from
			break
		}
	}
	return first, last
}
