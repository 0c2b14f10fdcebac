package scrub

import "bytes"

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
