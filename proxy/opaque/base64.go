package opaque

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"slices"
)

// inBase64 recognises text that begins as the base64 of something packed or of
// wide characters, in either alphabet, in quotes or not, in lines or not.
func inBase64(head []byte, final bool) (f Format, more bool) {
	var room [sniffed]byte
	text, whole := base64Text(room[:0], head)
	if !whole || len(text) == 0 && head[0] != '"' {
		return "", false
	}
	if len(text) < leastBase64 && !final {
		return "", slices.ContainsFunc(magics, func(m magic) bool {
			n := min(len(text), len(m.base64))
			return m.base64[:n] == string(text[:n])
		})
	}
	decoded, err := base64.RawStdEncoding.DecodeString(string(text[:len(text)/4*4]))
	if err != nil || len(decoded) == 0 {
		return "", false
	}
	if f, _ = packed(decoded, final); f == "" || f == "deflate" { // any word may decode to that
		f, _ = wide(decoded, final)
	}
	return f, false
}

// leastBase64 is how many characters of base64 are looked at, if they come:
// fewer may be a word.
const leastBase64 = 16

// base64Text appends the characters of head in the standard alphabet to text,
// without line ends, quotes and padding, and reports whether head holds nothing
// else.
func base64Text(text, head []byte) (_ []byte, whole bool) {
	head = bytes.Trim(head, "\"' \t\r\n")
	head = bytes.TrimRight(head, "=")
	for i := 0; i < len(head); i++ {
		c := head[i]
		if c == '\\' { // in a JSON string
			var n int
			if c, n = unescaped(head[i+1:]); n == 0 {
				return text, len(head)-i < len(`\u0000`)
			}
			i += n
		}
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '+', c == '/':
		case c == '-':
			c = '+'
		case c == '_':
			c = '/'
		case c == '\r', c == '\n':
			continue
		default:
			return nil, false
		}
		text = append(text, c)
	}
	return text, true
}

// unescaped returns the character that an escape of JSON stands for, whose
// backslash is in front of data, and its length; 0 when there is none.
func unescaped(data []byte) (c byte, n int) {
	switch {
	case len(data) == 0:
	case data[0] == 'n', data[0] == 'r':
		return '\n', 1
	case data[0] == '/':
		return '/', 1
	case data[0] == 'u' && len(data) >= 5:
		var unit [2]byte
		if _, err := hex.Decode(unit[:], data[1:5]); err == nil && unit[0] == 0 {
			return unit[1], 5
		}
	}
	return 0, 0
}
