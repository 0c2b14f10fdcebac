package scrub

import "strings"

// view is a stretch of the stream as symbols: what one decoding makes of it.
// Symbol i came from the bytes from[i] to to[i] of the scanner's buffer.
type view struct {
	symbols  []byte
	from, to []int32
	cut      int  // where an escape begins that the stretch does not end; its end when none
	final    bool // nothing follows the stretch: what looks like an escape and does not end is none
}

func (v *view) reset(end int) {
	v.symbols, v.from, v.to, v.cut = v.symbols[:0], v.from[:0], v.to[:0], end
}

func (v *view) put(c byte, from, to int32) {
	v.symbols = append(v.symbols, c)
	v.from = append(v.from, from)
	v.to = append(v.to, to)
}

// raw is data[from:to] itself.
func (v *view) raw(data []byte, from, to int) {
	v.reset(to)
	v.symbols = append(v.symbols, data[from:to]...)
	for i := from; i < to; i++ {
		v.from, v.to = append(v.from, int32(i)), append(v.to, int32(i+1)) //nolint:gosec // a stretch is far smaller than 2 GiB
	}
}

// family is a set of escape syntaxes.
type family int

const (
	inURL family = 1 << iota
	inJSON
	inHTML
	anywhere = inURL | inJSON | inHTML
)

// decode undoes one layer of a family's escapes in src.
func (v *view) decode(src *view, f family) {
	v.reset(src.cut)
	s := src.symbols
	for i := 0; i < len(s); {
		c, n := s[i], 1
		switch {
		case c == '%' && f&inURL != 0:
			c, n = percent(s[i:])
		case c == '\\' && f&inJSON != 0:
			c, n = backslash(s[i:])
		case c == '&' && f&inHTML != 0:
			c, n = entity(s[i:])
		}
		if n == 0 && v.final {
			c, n = s[i], 1
		}
		if n == 0 { // it goes on behind the stretch
			v.cut = min(v.cut, int(src.from[i]))
			return
		}
		v.put(c, src.from[i], src.to[i+n-1])
		i += n
	}
}

// quoted undoes quoted-printable (RFC 2045 section 6.7).
func (v *view) quoted(src *view) {
	v.reset(src.cut)
	s := src.symbols
	for i := 0; i < len(s); {
		if s[i] != '=' {
			v.put(s[i], src.from[i], src.to[i])
			i++
			continue
		}
		rest := s[i+1:]
		switch {
		case len(rest) >= 1 && rest[0] == '\n':
			i += 2
		case len(rest) >= 2 && rest[0] == '\r' && rest[1] == '\n':
			i += 3
		case len(rest) >= 2 && isHex(rest[0]) && isHex(rest[1]):
			v.put(unhex(rest[0])<<4|unhex(rest[1]), src.from[i], src.to[i+2])
			i += 3
		case !v.final && len(rest) == 0 || !v.final && len(rest) == 1 && (rest[0] == '\r' || isHex(rest[0])):
			v.cut = min(v.cut, int(src.from[i]))
			return
		default:
			v.put('=', src.from[i], src.to[i])
			i++
		}
	}
}

// maxGap is how much white space or separation inside an encoding is jumped
// over; it bounds what is held back.
const maxGap = 8

// joined drops white space, as between the lines of base64.
func (v *view) joined(src *view) {
	v.reset(src.cut)
	gap := 0
	for i, c := range src.symbols {
		if c == ' ' || c == '\t' || c == '\r' || c == '\n' {
			if gap++; gap > maxGap {
				v.put(separator, src.from[i], src.to[i])
			}
			continue
		}
		gap = 0
		v.put(c, src.from[i], src.to[i])
	}
}

// hexGaps may stand between the digits of a dump.
const hexGaps = ": -,;\\\t\r\n\"'"

// digits keeps hexadecimal digits, in lower case, and drops what dumps put
// between them. Anything else is a separator symbol.
func (v *view) digits(src *view) {
	v.reset(src.cut)
	gap := 0
	s := src.symbols
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case (c == '0' || c == '\\') && i+1 < len(s) && (s[i+1] == 'x' || s[i+1] == 'X'):
			i++
			gap += 2
		case (c == '0' || c == '\\') && i+1 == len(s) && !v.final:
			v.cut = min(v.cut, int(src.from[i]))
			return
		case isHex(c):
			if c >= 'A' && c <= 'F' {
				c += 'a' - 'A'
			}
			v.put(c, src.from[i], src.to[i])
			gap = 0
			continue
		case strings.IndexByte(hexGaps, c) >= 0:
			gap++
		default:
			gap = maxGap + 1
		}
		if gap > maxGap {
			v.put(separator, src.from[i], src.to[i])
			gap = 0
		}
	}
}
