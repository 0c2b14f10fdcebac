package reference

import (
	"html"
	"strconv"
	"strings"
)

// noByte stands for a character that is in no encoding.
const noByte = 0xff

// digitsOf returns the value of the first n bytes of s, which must be digits of the base; -1 if they are not.
func digitsOf(s string, n, base int) int {
	if n < 1 || len(s) < n || strings.ContainsAny(s[:n], "+-_") {
		return -1
	}
	value, err := strconv.ParseUint(s[:n], base, 64)
	if err != nil {
		return -1
	}
	return int(min(value, noByte))
}

// urlEscape reads %NN and %uNNNN.
func urlEscape(s string) (byte, int) {
	switch {
	case !strings.HasPrefix(s, "%"):
	case digitsOf(s[1:], 2, 16) >= 0:
		return byte(digitsOf(s[1:], 2, 16)), 3
	case len(s) > 1 && s[1]|0x20 == 'u' && digitsOf(s[2:], 4, 16) >= 0:
		return byte(digitsOf(s[2:], 4, 16)), 6
	}
	return 0, 0
}

// jsonEscape reads the escapes of JSON, JavaScript and Python.
func jsonEscape(s string) (byte, int) {
	if len(s) < 2 || s[0] != '\\' {
		return 0, 0
	}
	kind, rest := s[1], s[2:]
	switch {
	case strings.IndexByte(`/"\'`, kind) >= 0:
		return kind, 2
	case kind == 'n', kind == 'r':
		return '\n', 2
	case kind == 't':
		return '\t', 2
	case kind|0x20 == 'x' && digitsOf(rest, 2, 16) >= 0:
		return byte(digitsOf(rest, 2, 16)), 4
	case kind|0x20 == 'u' && strings.HasPrefix(rest, "{"):
		n := strings.IndexByte(rest, '}') - 1
		if n <= 8 && digitsOf(rest[1:], n, 16) >= 0 {
			return byte(digitsOf(rest[1:], n, 16)), 4 + n
		}
	case kind == 'U' && strings.HasPrefix(rest, "0000") && digitsOf(rest, 8, 16) >= 0:
		return byte(digitsOf(rest, 8, 16)), 10
	case kind|0x20 == 'u' && digitsOf(rest, 4, 16) >= 0:
		return byte(digitsOf(rest, 4, 16)), 6
	}
	return 0, 0
}

// htmlEscape reads the character references of HTML and XML.
func htmlEscape(s string) (byte, int) {
	number := func(prefix string, base, most int) (byte, int) {
		n := 0
		for n < most-len(prefix) && digitsOf(s[len(prefix):], n+1, base) >= 0 {
			n++
		}
		end := len(prefix) + n
		if n > 0 && strings.HasPrefix(s[end:], ";") {
			return byte(digitsOf(s[len(prefix):], n, base)), end + 1
		}
		if n > 0 {
			return byte(digitsOf(s[len(prefix):], n, base)), end
		}
		return 0, 0
	}
	const most = longestEscape - 1 // without the semicolon
	switch {
	case strings.HasPrefix(s, "&#x"), strings.HasPrefix(s, "&#X"):
		return number(s[:3], 16, most)
	case strings.HasPrefix(s, "&#"):
		return number("&#", 10, most)
	}
	if end := strings.IndexByte(s, ';'); end > 0 && end <= most && s[0] == '&' {
		if c := html.UnescapeString(s[:end+1]); len(c) == 1 {
			return c[0], end + 1
		}
		switch s[:end+1] { // characters that look like ones of ASCII
		case "&nbsp;":
			return ' ', end + 1
		case "&hyphen;", "&dash;":
			return '-', end + 1
		}
	}
	for _, old := range []string{"&amp", "&lt", "&gt", "&quot", "&AMP", "&LT", "&GT", "&QUOT"} {
		if strings.HasPrefix(s, old) {
			return html.UnescapeString(old + ";")[0], len(old)
		}
	}
	return 0, 0
}

// anyEscape reads an escape of any of the three syntaxes.
func anyEscape(s string) (byte, int) {
	for _, parse := range []func(string) (byte, int){urlEscape, jsonEscape, htmlEscape} {
		if c, n := parse(s); n > 0 {
			return c, n
		}
	}
	return 0, 0
}
