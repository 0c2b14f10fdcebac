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

// named returns the byte of a named character reference for ASCII that servers write, or 0.
func named(name string) byte {
	switch name {
	case "amp":
		return '&'
	case "lt":
		return '<'
	case "gt":
		return '>'
	case "quot":
		return '"'
	case "apos":
		return '\''
	case "plus":
		return '+'
	case "sol":
		return '/'
	case "equals":
		return '='
	case "percnt":
		return '%'
	case "bsol":
		return '\\'
	case "num":
		return '#'
	case "semi":
		return ';'
	case "colon":
		return ':'
	case "comma":
		return ','
	case "period":
		return '.'
	case "lowbar", "UnderBar":
		return '_'
	case "excl":
		return '!'
	case "dollar":
		return '$'
	case "lpar":
		return '('
	case "rpar":
		return ')'
	case "ast", "midast":
		return '*'
	case "quest":
		return '?'
	case "commat":
		return '@'
	case "lsqb", "lbrack":
		return '['
	case "rsqb", "rbrack":
		return ']'
	case "Hat":
		return '^'
	case "grave":
		return '`'
	case "lbrace", "lcub":
		return '{'
	case "rbrace", "rcub":
		return '}'
	case "verbar", "vert":
		return '|'
	case "nbsp":
		return ' '
	case "Tab":
		return '\t'
	case "NewLine":
		return '\n'
	case "hyphen", "dash":
		return '-'
	}
	return 0
}

// maxEntity is the length of the longest parsed reference, with & and ;.
const maxEntity = 12

// entity parses a character reference of HTML or XML. HTML allows numbers, and the
// oldest names, without the semicolon.
func entity(s []byte, final bool) (byte, int) {
	if len(s) > 1 && classOf[s[1]]&nameStart == 0 && !isHex(s[1]) {
		return '&', 1
	}
	end := 1
	for end < len(s) && end < maxEntity && (s[end] == '#' || isAlnum(s[end])) {
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
	if length > end {
		if c := named(string(name)); c != 0 {
			return c, length
		}
	}
	for n := min(len(name), len("quot")); n >= len("lt"); n-- {
		if c := old(string(name[:n])); c != 0 && n == len(name) {
			return c, length
		} else if c != 0 {
			return c, 1 + n
		}
	}
	return '&', 1
}

// old returns the byte of a named character reference that needs no semicolon, or 0.
func old(name string) byte {
	switch name {
	case "amp", "AMP":
		return '&'
	case "lt", "LT":
		return '<'
	case "gt", "GT":
		return '>'
	case "quot", "QUOT":
		return '"'
	}
	return 0
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
