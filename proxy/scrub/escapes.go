package scrub

import (
	"bytes"
	"strings"
)

// Each of these reads one escape at the beginning of s: the byte that it stands
// for and its length; the byte itself and 1 when it is no escape; 0 and 0 when
// s ends before that is known.

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

// entity reads a character reference of HTML or XML. HTML allows numbers, and
// the oldest names, without the semicolon.
func entity(s []byte, final bool) (byte, int) {
	end := 1
	for end < len(s) && end < maxEntity && (s[end] == '#' || isHex(s[end]) || s[end] >= 'g' && s[end] <= 'z' || s[end] >= 'G' && s[end] <= 'Z') {
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
			return entities[strings.ToLower(old)], 1 + len(old)
		}
	}
	return '&', 1
}

// number reads decimal digits, or hexadecimal ones behind an x, and gives how
// many bytes they take.
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
