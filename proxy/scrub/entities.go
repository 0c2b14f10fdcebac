package scrub

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
	end := min(2, len(s))
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
	if len(name) > 0 && !oldLetter[name[0]] {
		return '&', 1
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

// oldLetter has the first letters of the names that old knows.
var oldLetter = [256]bool{'a': true, 'A': true, 'l': true, 'L': true, 'g': true, 'G': true, 'q': true, 'Q': true}

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
