package scrub

import (
	"bytes"
	"strings"
)

// family is a set of escape syntaxes.
type family uint8

const (
	inURL family = 1 << iota
	inJSON
	inHTML
	anywhere = inURL | inJSON | inHTML
)

// decode decodes one layer of a family's escapes in src.
func (v *view) decode(src *view, f family) {
	v.start(src)
	s := src.symbols
	plain := 0 // start of what is not copied yet
	for i := nextEscape(s, 0, f); i < len(s); i = nextEscape(s, i, f) {
		c, n := s[i], 1
		switch c {
		case '%':
			c, n = percent(s[i:])
		case '\\':
			c, n = backslash(s[i:])
		case '&':
			c, n = entity(s[i:], v.final)
		}
		switch {
		case n > 1:
			v.take(src, plain, i)
			v.put(c, src.begin(i), src.end(i+n-1))
			v.undone = true
			plain = i + n
		case n == 0 && v.final:
			n = 1
		case n == 0: // it continues after the region
			v.take(src, plain, i)
			v.cut = min(v.cut, int(src.begin(i)))
			return
		}
		i += n
	}
	v.take(src, plain, len(s))
}

// nextEscape returns the index of the first byte in s, from i on, that begins an
// escape of f, or len(s).
func nextEscape(s []byte, i int, f family) int {
	if i >= len(s) {
		return len(s)
	}
	n := -1
	switch f {
	case inURL:
		n = bytes.IndexByte(s[i:], '%')
	case inJSON:
		n = bytes.IndexByte(s[i:], '\\')
	case inHTML:
		n = bytes.IndexByte(s[i:], '&')
	default:
		for ; i < len(s); i++ {
			if c := s[i]; c == '%' || c == '\\' || c == '&' {
				return i
			}
		}
	}
	if n < 0 {
		return len(s)
	}
	return i + n
}

// quoted decodes quoted-printable (RFC 2045 section 6.7).
func (v *view) quoted(src *view) {
	v.start(src)
	s := src.symbols
	plain := 0
	for i := bytes.IndexByte(s, '='); i >= 0 && i < len(s); {
		rest := s[i+1:]
		n := 1
		switch {
		case len(rest) >= 1 && rest[0] == '\n':
			n = 2
			v.take(src, plain, i)
		case len(rest) >= 2 && rest[0] == '\r' && rest[1] == '\n':
			n = 3
			v.take(src, plain, i)
		case len(rest) >= 2 && isHex(rest[0]) && isHex(rest[1]):
			n = 3
			v.take(src, plain, i)
			v.put(unhex(rest[0])<<4|unhex(rest[1]), src.begin(i), src.end(i+2))
		case !v.final && len(rest) == 0 || !v.final && len(rest) == 1 && (rest[0] == '\r' || isHex(rest[0])):
			v.take(src, plain, i)
			v.cut = min(v.cut, int(src.begin(i)))
			return
		}
		if n > 1 {
			v.undone, plain = true, i+n
		}
		next := bytes.IndexByte(s[i+n:], '=')
		if next < 0 {
			break
		}
		i += n + next
	}
	v.take(src, plain, len(s))
}

// maxGap is how much white space or separation inside an encoding is skipped; it
// bounds what is held back.
const maxGap = 8

// joined removes white space, as between the lines of base64.
func (v *view) joined(src *view) {
	v.start(src)
	gap := 0
	for i, c := range src.symbols {
		if c == ' ' || c == '\t' || c == '\r' || c == '\n' {
			if gap++; gap > maxGap {
				v.put(separator, src.begin(i), src.end(i))
			}
			continue
		}
		gap = 0
		v.put(c, src.begin(i), src.end(i))
	}
}

// hexGaps may separate the digits of a dump.
const hexGaps = ": -,;\\\t\r\n\"'"

// digits keeps hexadecimal digits, in lower case, and removes the separators of
// dumps. Anything else becomes a separator symbol.
func (v *view) digits(src *view) {
	v.start(src)
	gap := 0
	s := src.symbols
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case classOf[c]&hexDump == 0:
			v.separate(src, i)
			i = skip(s, i, hexDump)
			gap = 0
			continue
		case (c == '0' || c == '\\') && i+1 < len(s) && (s[i+1] == 'x' || s[i+1] == 'X'):
			i++
			gap += 2
		case (c == '0' || c == '\\') && i+1 == len(s) && !v.final:
			v.cut = min(v.cut, int(src.begin(i)))
			return
		case isHex(c):
			from := i
			for i+1 < len(s) && isHex(s[i+1]) && (s[i+1] != '0' || i+2 < len(s) && s[i+2]|' ' != 'x') {
				i++
			}
			n := len(v.symbols)
			v.take(src, from, i+1)
			lower(v.symbols[n:n], v.symbols[n:])
			gap = 0
			continue
		case strings.IndexByte(hexGaps, c) >= 0:
			gap++
		default:
			gap = maxGap + 1
		}
		if gap > maxGap {
			v.separate(src, i)
			gap = 0
		}
	}
}

// skip returns the index of the last byte, from i on, before one of class.
func skip(s []byte, i int, class uint8) int {
	for i+1 < len(s) && classOf[s[i+1]]&class == 0 {
		i++
	}
	return i
}

// decimalGaps may separate the numbers of an array, up to maxDecimalGap of them: as
// many as the indentation of a line.
const (
	decimalGaps   = ", \t\r\n;:\"'"
	maxDecimalGap = 16
)

// numbers decodes an array of decimal numbers to bytes, and removes what separates
// them. Anything else becomes a separator symbol. A number at the end may
// continue after it.
func (v *view) numbers(src *view) {
	v.start(src)
	s := src.symbols
	gap := 0
	for i := 0; i < len(s); i++ {
		switch class := classOf[s[i]]; {
		case class&decimalDigit != 0:
			n, value := decimal(s[i:])
			if i+n == len(s) && !v.final {
				v.cut = min(v.cut, int(src.begin(i)))
				return
			}
			v.put(value, src.begin(i), src.end(i+n-1))
			i += n - 1
			gap = 0
		case class&decimalGap == 0, gap == maxDecimalGap:
			v.separate(src, i)
			i = skip(s, i, decimalDigit)
			gap = 0
		default:
			gap++
		}
	}
}

// separate writes one separator symbol for any number of bytes without a symbol.
func (v *view) separate(src *view, i int) {
	if n := len(v.symbols); n > 0 && v.symbols[n-1] != separator {
		v.put(separator, src.begin(i), src.end(i))
	}
}

// decimal parses the digits at the beginning of s, and returns how many they are and
// the byte that they encode.
func decimal(s []byte) (n int, value byte) {
	v := 0
	for n < len(s) && s[n] >= '0' && s[n] <= '9' {
		if v = v*10 + int(s[n]-'0'); v > 0xff {
			v = separator
		}
		n++
	}
	return n, byte(v)
}
