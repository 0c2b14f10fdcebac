package scrub

import (
	"bytes"
	"strings"
)

// Each of these parses one escape at the beginning of s. It returns the byte that the
// escape encodes and its length; the byte itself and 1 if it is no escape; 0 and 0 if
// s ends before that is certain.

func percent(s []byte) (byte, int) {
	switch {
	case len(s) >= 2 && s[1]|0x20 == 'u': // JavaScript's escape
		return hexNumber('%', s, 2, 4)
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
	case 'u', 'U', 'x', 'X':
		return number16(s)
	case '/', '"', '\\', '\'':
		return s[1], 2
	case 'n', 'r':
		return '\n', 2
	case 't':
		return '\t', 2
	}
	return '\\', 1
}

// number16 parses \xNN, \uNNNN, \u{N} and \UNNNNNNNN, also after their case was
// folded.
func number16(s []byte) (byte, int) {
	switch {
	case len(s) == 2:
		return 0, 0
	case s[1]|0x20 == 'x':
		return hexNumber('\\', s, 2, 2)
	case s[2] == '{':
		return braced(s)
	}
	if s[1] == 'U' && bytes.HasPrefix(s[2:], []byte("0000")) && len(s) > 6 && isHex(s[6]) {
		return hexNumber('\\', s, 2, 8)
	}
	if s[1] == 'U' && len(s) <= 6 && zeros(s[2:]) {
		return 0, 0
	}
	return hexNumber('\\', s, 2, 4)
}

func zeros(s []byte) bool { return len(bytes.TrimLeft(s, "0")) == 0 }

// hexNumber parses the digits of an escape that begins with c and has its digits
// after the first from bytes.
func hexNumber(c byte, s []byte, from, digits int) (byte, int) {
	value := 0
	for i := from; i < from+digits; i++ {
		if i == len(s) {
			return 0, 0
		}
		if !isHex(s[i]) {
			return c, 1
		}
		value = value<<4 | int(unhex(s[i]))
	}
	return symbol(value), from + digits
}

// maxBraced is how many digits a number in braces may have: six and some
// zeros in front.
const maxBraced = 8

// braced parses \u{N}.
func braced(s []byte) (byte, int) {
	const from = len(`\u{`)
	value := 0
	for i := from; i <= from+maxBraced; i++ {
		switch {
		case i == len(s):
			return 0, 0
		case s[i] == '}' && i > from:
			return symbol(value), i + 1
		case !isHex(s[i]):
			return '\\', 1
		}
		value = min(value<<4|int(unhex(s[i])), 1<<24)
	}
	return '\\', 1
}

// symbol returns the byte that a number encodes, or a separator.
func symbol(value int) byte {
	if value >= separator {
		return separator
	}
	return byte(value)
}

// entities are the named character references for ASCII that servers write.
var entities = map[string]byte{
	"amp": '&', "lt": '<', "gt": '>', "quot": '"', "apos": '\'', "plus": '+', "sol": '/', "equals": '=', "percnt": '%',
	"bsol": '\\', "num": '#', "semi": ';', "colon": ':', "comma": ',', "period": '.', "lowbar": '_', "excl": '!',
	"dollar": '$',
	"lpar":   '(', "rpar": ')', "ast": '*', "quest": '?', "commat": '@', "lsqb": '[', "rsqb": ']', "Hat": '^',
	"grave": '`', "lbrack": '[', "rbrack": ']', "lbrace": '{', "rbrace": '}', "midast": '*', "UnderBar": '_',
	"lcub": '{', "verbar": '|', "vert": '|', "rcub": '}', "nbsp": ' ', "Tab": '\t', "NewLine": '\n', "hyphen": '-',
	"dash": '-',
}

// maxEntity is the length of the longest parsed reference, with & and ;.
const maxEntity = 12

// entity parses a character reference of HTML or XML. HTML allows numbers, and the
// oldest names, without the semicolon.
func entity(s []byte, final bool) (byte, int) {
	end := 1
	for end < len(s) && end < maxEntity &&
		(s[end] == '#' || isHex(s[end]) || s[end] >= 'g' && s[end] <= 'z' || s[end] >= 'G' && s[end] <= 'Z') {
		end++
	}
	if end == len(s) && end < maxEntity && !final {
		return 0, 0
	}
	length := end
	if end < len(s) && s[end] == ';' {
		length++
	}
	name := s[1:end]
	if len(name) > 1 && name[0] == '#' {
		value, digits := number(name[1:])
		if digits == 0 {
			return '&', 1
		}
		if digits < len(name)-1 {
			length = 2 + digits
		}
		return value, length
	}
	if c, ok := entities[string(name)]; ok && length > end {
		return c, length
	}
	for _, old := range [...]string{"amp", "lt", "gt", "quot", "AMP", "LT", "GT", "QUOT"} {
		if bytes.HasPrefix(name, []byte(old)) {
			if len(old) == len(name) {
				return entities[strings.ToLower(old)], length
			}
			return entities[strings.ToLower(old)], 1 + len(old)
		}
	}
	return '&', 1
}

// number parses decimal digits, or hexadecimal ones after an x, and returns their
// value and how many bytes they take.
func number(s []byte) (value byte, n int) {
	base, v := 10, 0
	if s[0] == 'x' || s[0] == 'X' {
		base, n = 16, 1
	}
	start := n
	for ; n < len(s) && isHex(s[n]) && (base == 16 || s[n] <= '9'); n++ {
		if v = v*base + int(unhex(s[n])); v > 0xfe {
			v = separator
		}
	}
	if n == start {
		return 0, 0
	}
	return byte(v), n
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
