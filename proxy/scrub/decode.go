package scrub

import (
	"slices"
	"strings"
)

// view is a stretch of the stream as symbols: what one decoding makes of it.
// Symbol i came from the bytes from[i] to to[i].
type view struct {
	symbols  []byte
	from, to []int32
	cut      int  // where an escape begins that the stretch does not end; len of the stretch when none
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

// raw is the stretch itself.
func (v *view) raw(data []byte) {
	v.reset(len(data))
	v.symbols = append(v.symbols, data...)
	for i := range data {
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
		case strings.IndexByte(": -,;\t\r\n\"'", c) >= 0:
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

func percent(s []byte) (byte, int) {
	switch {
	case len(s) < 2 || len(s) == 2 && isHex(s[1]):
		return 0, 0
	case len(s) > 2 && isHex(s[1]) && isHex(s[2]):
		return unhex(s[1])<<4 | unhex(s[2]), 3
	}
	return '%', 1
}

func backslash(s []byte) (byte, int) {
	if len(s) < 2 {
		return 0, 0
	}
	switch s[1] {
	case 'u', 'x':
		want := 2
		if s[1] == 'u' {
			want = 4
		}
		value := 0
		for i := 2; i < 2+want; i++ {
			if i == len(s) {
				return 0, 0
			}
			if !isHex(s[i]) {
				return '\\', 1
			}
			value = value<<4 | int(unhex(s[i]))
		}
		if value > 0xfe {
			value = separator
		}
		return byte(value), 2 + want
	case '/', '"', '\\', '\'':
		return s[1], 2
	case 'n', 'r':
		return '\n', 2
	case 't':
		return '\t', 2
	}
	return '\\', 1
}

// entities are the named ones for ASCII that servers write.
var entities = map[string]byte{
	"amp": '&', "lt": '<', "gt": '>', "quot": '"', "apos": '\'', "plus": '+', "sol": '/', "equals": '=', "percnt": '%',
	"bsol": '\\', "num": '#', "semi": ';', "colon": ':', "comma": ',', "period": '.', "lowbar": '_', "excl": '!', "dollar": '$',
	"lpar": '(', "rpar": ')', "ast": '*', "quest": '?', "commat": '@', "lsqb": '[', "rsqb": ']', "Hat": '^', "grave": '`',
	"lcub": '{', "verbar": '|', "vert": '|', "rcub": '}', "nbsp": ' ', "Tab": '\t', "NewLine": '\n', "hyphen": '-', "dash": '-',
}

// maxEntity is the longest reference that is read, with & and ;.
const maxEntity = 12

func entity(s []byte) (byte, int) {
	end := slices.Index(s[:min(len(s), maxEntity)], ';')
	if end < 0 {
		for _, c := range s[1:min(len(s), maxEntity)] {
			if !isHex(c) && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && c != '#' {
				return '&', 1
			}
		}
		if len(s) < maxEntity {
			return 0, 0
		}
		return '&', 1
	}
	name := string(s[1:end])
	if c, ok := entities[name]; ok {
		return c, end + 1
	}
	number, ok := strings.CutPrefix(name, "#")
	if !ok || number == "" {
		return '&', 1
	}
	base := 10
	if number[0] == 'x' || number[0] == 'X' {
		number, base = number[1:], 16
	}
	value := 0
	for _, c := range []byte(number) {
		if !isHex(c) || base == 10 && (c < '0' || c > '9') {
			return '&', 1
		}
		if value = value*base + int(unhex(c)); value > 0xfe {
			value = separator
		}
	}
	if number == "" {
		return '&', 1
	}
	return byte(value), end + 1
}

func isHex(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}

func unhex(c byte) byte {
	switch {
	case c >= 'a':
		return c - 'a' + 10
	case c >= 'A':
		return c - 'A' + 10
	}
	return c - '0'
}
