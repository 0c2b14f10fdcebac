package scrub

import (
	"slices"
	"strings"
)

// view is a stretch of the stream as symbols: what one decoding makes of it.
// Symbol i came from the bytes from[i] to to[i] of the scanner's buffer.
type view struct {
	symbols  []byte
	from, to []int32
	base     int  // of a view without positions: where its first symbol is
	cut      int  // where an escape begins that the stretch does not end; its end when none
	final    bool // nothing follows the stretch: what looks like an escape and does not end is none
	undone   bool // there was an escape
}

// start makes room for what src becomes.
func (v *view) start(src *view) {
	n := len(src.symbols)
	v.symbols = slices.Grow(v.symbols[:0], n)
	v.from, v.to = slices.Grow(v.from[:0], n), slices.Grow(v.to[:0], n)
	v.cut, v.undone = src.cut, false
}

func (v *view) put(c byte, from, to int32) {
	v.symbols = append(v.symbols, c)
	v.from = append(v.from, from)
	v.to = append(v.to, to)
}

// begin is where symbol i begins.
func (v *view) begin(i int) int32 {
	if v.from == nil {
		return int32(v.base + i) //nolint:gosec // a piece is far smaller than 2 GiB
	}
	return v.from[i]
}

// end is where symbol i ends.
func (v *view) end(i int) int32 {
	if v.to == nil {
		return int32(v.base + i + 1) //nolint:gosec // as above
	}
	return v.to[i]
}

// raw is data[from:to] itself, not copied.
func (v *view) raw(data []byte, from, to int) {
	v.symbols, v.base, v.cut = data[from:to], from, to
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
	v.start(src)
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
			v.cut = min(v.cut, int(src.begin(i)))
			return
		}
		v.undone = v.undone || n > 1
		v.put(c, src.begin(i), src.end(i+n-1))
		i += n
	}
}

// quoted undoes quoted-printable (RFC 2045 section 6.7).
func (v *view) quoted(src *view) {
	v.start(src)
	s := src.symbols
	for i := 0; i < len(s); {
		if s[i] != '=' {
			v.put(s[i], src.begin(i), src.end(i))
			i++
			continue
		}
		rest := s[i+1:]
		switch {
		case len(rest) >= 1 && rest[0] == '\n':
			v.undone = true
			i += 2
		case len(rest) >= 2 && rest[0] == '\r' && rest[1] == '\n':
			v.undone = true
			i += 3
		case len(rest) >= 2 && isHex(rest[0]) && isHex(rest[1]):
			v.undone = true
			v.put(unhex(rest[0])<<4|unhex(rest[1]), src.begin(i), src.end(i+2))
			i += 3
		case !v.final && len(rest) == 0 || !v.final && len(rest) == 1 && (rest[0] == '\r' || isHex(rest[0])):
			v.cut = min(v.cut, int(src.begin(i)))
			return
		default:
			v.put('=', src.begin(i), src.end(i))
			i++
		}
	}
}

// maxGap is how much white space or separation inside an encoding is jumped
// over; it bounds what is held back.
const maxGap = 8

// joined drops white space, as between the lines of base64.
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

// hexGaps may stand between the digits of a dump.
const hexGaps = ": -,;\\\t\r\n\"'"

// digits keeps hexadecimal digits, in lower case, and drops what dumps put
// between them. Anything else is a separator symbol.
func (v *view) digits(src *view) {
	v.start(src)
	gap := 0
	s := src.symbols
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case (c == '0' || c == '\\') && i+1 < len(s) && (s[i+1] == 'x' || s[i+1] == 'X'):
			i++
			gap += 2
		case (c == '0' || c == '\\') && i+1 == len(s) && !v.final:
			v.cut = min(v.cut, int(src.begin(i)))
			return
		case isHex(c):
			if c >= 'A' && c <= 'F' {
				c += 'a' - 'A'
			}
			v.put(c, src.begin(i), src.end(i))
			gap = 0
			continue
		case strings.IndexByte(hexGaps, c) >= 0:
			gap++
		default:
			gap = maxGap + 1
		}
		if gap > maxGap {
			v.put(separator, src.begin(i), src.end(i))
			gap = 0
		}
	}
}
