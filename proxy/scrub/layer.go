package scrub

import "bytes"

// A layer is a decoding of a token without the place of every symbol: only one byte in
// markEvery of the source has its place in it recorded. Most layers contain no hit, and
// are forgotten; where one does, a view of the surroundings shows where it begins and ends.
type layer struct {
	symbols []byte
	marks   []mark
	starts  family   // the families that the symbols may contain escapes of
	undone  family   // the families of the escapes that were decoded
	ends    []ending // of escapes, if all families were decoded
	work    int      // the bytes that were decoded so far; a test bounds them
}

// mark records that what begins at from in the source begins at symbol at.
type mark struct{ from, at int }

const markEvery = 256

// ending is the last two bytes of an escape, and the index of its symbol.
type ending struct {
	before, last byte
	at           int
}

// traits are further families, for what a layer contains.
const (
	inQuoted family = 8 << iota // quoted-printable: it is decoded alone
	inBlanks                    // white space
)

// traits has the families whose escapes a byte begins.
var traits = [256]family{'%': inURL, '\\': inJSON, '&': inHTML, '=': inQuoted,
	' ': inBlanks, '\t': inBlanks, '\r': inBlanks, '\n': inBlanks}

// follows has, for each byte, the families with escapes of which it is the second byte.
var follows = func() (f [256]family) {
	for c := range f {
		b := byte(c)
		if isHex(b) || b|0x20 == 'u' {
			f[c] |= inURL
		}
		if bytes.IndexByte([]byte(`uUxX/"\'nrt`), b) >= 0 {
			f[c] |= inJSON
		}
		if classOf[c]&nameStart != 0 {
			f[c] |= inHTML
		}
		if isHex(b) || b == '\r' || b == '\n' {
			f[c] |= inQuoted
		}
	}
	return f
}()

// startsIn returns the families whose escapes text may contain.
func startsIn(text []byte) (f family) {
	for _, c := range text {
		f |= traits[c]
	}
	return f
}

// decode decodes one layer of the escapes of f in src, up to the first escape of a byte in
// stop. It returns the length of what it decoded. With bytes to stop at, src is the data
// itself, and an interrupted escape is left to the next layer.
func (l *layer) decode(src []byte, f family, stop *[256]bool) int {
	if cap(l.symbols) < len(src) {
		l.symbols = make([]byte, len(src)+len(src)/4)
	}
	l.marks, l.ends = l.marks[:0], l.ends[:0]
	out, n, undone, all := l.symbols[:len(src)], 0, family(0), family(0)
	i := 0
decode:
	for i < len(src) {
		l.marks = append(l.marks, mark{i, n})
		for end := min(i+markEvery, len(src)); i < end; n++ {
			c, at := src[i], i
			lead := traits[c] & f
			if i++; lead != 0 {
				value, length := c, 1
				if i < len(src) && follows[src[i]]&lead != 0 {
					value, length = escape(src[at:])
				}
				switch {
				case length == 1:
				case stop != nil && interrupted(src[at:], length):
				case stop != nil && stop[value]:
					i = at
					break decode
				default:
					undone |= lead
					c, i = value, at+length
					if lead == inQuoted && !isHex(src[at+1]) { // a soft line break is no symbol
						n--
						continue
					}
					l.ends = append(l.ends, ending{src[i-2], src[i-1], n})
				}
			}
			all |= traits[c]
			out[n] = c
		}
	}
	l.symbols, l.starts, l.undone = out[:n], all, undone
	l.work += i
	return i
}

// interrupted reports whether the escape of n bytes at the beginning of s is shorter than
// what it may become when the escape of another syntax behind it is decoded, as in &#6%35;.
// Only the next layer shows that.
func interrupted(s []byte, n int) bool {
	if n == len(s) {
		return false
	}
	switch next := traits[s[n]]; s[0] {
	case '&':
		return s[1] == '#' && s[n-1] != ';' && next&(inURL|inJSON) != 0
	case '\\':
		return n == 6 && s[1] == 'U' && zeros(s[2:6]) && next&(inURL|inHTML) != 0
	}
	return false
}

// mixed reports whether escapes of more than one family were decoded.
func (l *layer) mixed() bool { return l.undone&(l.undone-1) != 0 }

// escape parses the escape at the beginning of s, as the functions of escapes.go do, if
// nothing follows s. The usual ones come first.
func escape(s []byte) (c byte, n int) {
	if len(s) > 2 {
		switch s[0] {
		case '%', '=':
			if high, low := digit[s[1]], digit[s[2]]; high|low < 16 {
				return high<<4 | low, 3
			}
		case '\\':
			if c := short[s[1]]; c != 0 {
				return c, 2
			}
		}
	}
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

// digit has the values of hexadecimal digits, and 16 for all other bytes.
var digit = func() (value [256]uint8) {
	for c := range value {
		if value[c] = 16; isHex(byte(c)) {
			value[c] = unhex(byte(c))
		}
	}
	return value
}()

// short has the bytes that a backslash and one byte encode, as backslash does.
var short = [256]byte{'/': '/', '"': '"', '\\': '\\', '\'': '\'', 'n': '\n', 'r': '\n', 't': '\t'}

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
	l.symbols, l.marks, l.work = l.symbols[:0], l.marks[:0], l.work+len(src)
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
