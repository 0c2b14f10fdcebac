package scrub

import (
	"bytes"
	"sort"
)

// A layer is a decoding of a token.
type layer struct {
	symbols []byte
	jumps   []jump // of a decoding, and of what was joined: where symbols came from, as in a view
	marks   []mark // of a dump: where some symbols came from
	starts  family // the families that the symbols may contain escapes of
	undone  family // the families of the escapes that were decoded
	left    bool   // an interrupted escape was left to the next layer
	size    int    // how much of the source was decoded
	work    int    // the bytes that were decoded so far; a test bounds them
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
// stop. It returns the length of what it decoded. It may leave interrupted escapes to the
// next layer. If src is open, more follows, and an escape at its end may be another one.
func (l *layer) decode(src []byte, f family, stop *[256]bool, leave, open bool) int {
	l.start(len(src))
	out, n, i := l.symbols[:len(src)], 0, 0
	undone, all := family(0), family(0)
decode:
	for i < len(src) {
		c, at := src[i], i
		i++
		if traits[c] == 0 {
			out[n] = c
			n++
			continue
		}
		lead := traits[c] & f
		if open && lead != 0 && at+maxEntity >= len(src) && unfinished(src[at:]) {
			i = at
			break
		}
		if lead != 0 && i < len(src) && follows[src[i]]&lead != 0 {
			value, length := escape(src[at:])
			switch {
			case length == 1:
			case leave && interrupted(src[at:], length):
				l.left = true
			case stop != nil && stop[value]:
				i = at
				break decode
			default:
				undone |= lead
				c, i = value, at+length
				if lead == inQuoted && !isHex(src[at+1]) { // a soft line break is no symbol
					l.jump(n, i, i+1)
					continue
				}
				l.jump(n, at, i)
			}
		}
		all |= traits[c]
		out[n] = c
		n++
	}
	l.symbols, l.starts, l.undone, l.size = out[:n], all, undone, i
	l.work += i
	return i
}

// unfinished reports whether what follows s may change what escape it begins with.
func unfinished(s []byte) bool {
	n := 1
	switch s[0] {
	case '%':
		_, n = percent(s)
	case '\\':
		_, n = backslash(s)
	case '&':
		_, n = entity(s, false)
	}
	return n == 0
}

// start empties l for a decoding of size bytes.
func (l *layer) start(size int) {
	if cap(l.symbols) < size {
		l.symbols = make([]byte, size+size/4)
	}
	l.symbols, l.jumps, l.marks, l.left = l.symbols[:0], l.jumps[:0], l.marks[:0], false
}

// jump records that symbol at is src[from:to], and what follows it the bytes from there on.
func (l *layer) jump(at, from, to int) {
	//nolint:gosec // what is searched at once is bounded
	l.jumps = append(l.jumps, jump{int32(at), int32(from), int32(to)})
}

// interrupted reports whether the escape of n bytes at the beginning of s is shorter than
// what it may become when the escape of another syntax behind it is decoded, as in &#6%35;
// and &lt%3B. Only the next layer shows that.
func interrupted(s []byte, n int) bool {
	if n == len(s) {
		return false
	}
	switch next := traits[s[n]]; s[0] {
	case '&':
		return s[n-1] != ';' && next&(inURL|inJSON) != 0
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
	l.start(len(src))
	l.work += len(src)
	out, n, gap := l.symbols[:len(src)], 0, 0
	for i, c := range src {
		if classOf[c]&blank != 0 {
			if gap++; gap <= maxGap {
				continue
			}
			c = separator
			l.jump(n, i, i+1)
		} else if gap > 0 {
			l.jump(n, i, i+1)
			gap = 0
		}
		out[n] = c
		n++
	}
	l.symbols = out[:n]
}

// source returns the part of the source, of size bytes, that contains symbols from to to. In a
// dump it may be longer.
func (l *layer) source(from, to, size int) (int, int) {
	if len(l.marks) == 0 {
		first, _ := l.place(from)
		_, last := l.place(to - 1)
		return first, last
	}
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

// place returns where symbol i came from.
func (l *layer) place(i int) (from, to int) {
	k := sort.Search(len(l.jumps), func(k int) bool { return int(l.jumps[k].at) > i }) - 1
	if k < 0 {
		return i, i + 1
	}
	j := l.jumps[k]
	if int(j.at) == i {
		return int(j.from), int(j.to)
	}
	from = int(j.to) + i - int(j.at) - 1
	return from, from + 1
}
