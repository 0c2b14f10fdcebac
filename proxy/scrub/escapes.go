package scrub

import (
	"slices"
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
