// Package opaque recognises content in which a search for a secret finds
// nothing although the secret is there: compressed data, archives, and text
// in characters wider than a byte.
//
// [Sniff] judges the first bytes of a body. [NewBody] reads them ahead, so
// that a response can be refused before anything of it has left. [Parts] and
// [Messages] look into multipart bodies and into gRPC's, for as long as they
// last.
//
// What has no mark of its own is not recognised: Brotli, LZ4 blocks, raw
// DEFLATE that is shorter than 64 bytes, encrypted data.
package opaque

import (
	"bytes"
	"encoding/base64"
	"slices"
)

// Format is what content was recognised as: "gzip", "zip", "utf-16". The
// empty Format is content that can be searched.
type Format string

// The formats that are no compression.
const (
	UTF16  Format = "utf-16"
	UTF32  Format = "utf-32"
	EBCDIC Format = "ebcdic"
)

// Charset reports whether f is text in another character set rather than
// packed data.
func (f Format) Charset() bool { return f == UTF16 || f == UTF32 || f == EBCDIC }

// sniffed is how much of a body's beginning is looked at.
const sniffed = 512

// Sniff reports the format that head, the beginning of some content, shows.
// If more is true, head is a proper prefix of a format's mark, and the next
// bytes decide. With final, nothing follows head and more is false.
func Sniff(head []byte, final bool) (f Format, more bool) {
	head = head[:min(len(head), sniffed)]
	if len(head) == 0 {
		return "", !final
	}
	for _, look := range []func([]byte, bool) (Format, bool){packed, wide, inBase64} {
		found, open := look(head, final)
		if found != "" {
			return found, false
		}
		more = more || open
	}
	return "", more && !final
}

// packed recognises compressed data and archives as they are.
func packed(head []byte, final bool) (f Format, more bool) {
	for _, m := range magics {
		switch {
		case bytes.HasPrefix(head, []byte(m.bytes)):
			return m.format, false
		case len(head) < len(m.bytes) && m.bytes[:len(head)] == string(head):
			more = true
		}
	}
	f, open := deflated(head, final)
	return f, open || more
}

// inBase64 recognises text that begins as the base64 of something packed, in
// either alphabet, in quotes or not, in lines or not.
func inBase64(head []byte, final bool) (f Format, more bool) {
	text, whole := base64Text(head)
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
	if f, _ = packed(decoded, final); f == "deflate" {
		return "", false // any word may decode to it
	}
	return f, false
}

// leastBase64 is how many characters of base64 are looked at, if they come:
// fewer may be a word.
const leastBase64 = 16

// base64Text returns the characters of head in the standard alphabet, without
// line ends, quotes and padding, and whether head holds nothing else.
func base64Text(head []byte) (text []byte, whole bool) {
	head = bytes.TrimLeft(head, "\" \t\r\n")
	head = bytes.TrimRight(head, "\" \t\r\n")
	head = bytes.TrimRight(head, "=")
	text = make([]byte, 0, len(head))
	for i, c := range head {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '+', c == '/':
		case c == '-':
			c = '+'
		case c == '_':
			c = '/'
		case c == '\r', c == '\n':
			continue
		case c == '\\' && i+1 < len(head) && (head[i+1] == 'n' || head[i+1] == 'r'): // in a JSON string
			return text, true
		default:
			return nil, false
		}
		text = append(text, c)
	}
	return text, true
}

// wide recognises text in UTF-16, UTF-32 or EBCDIC: by a byte order mark, by
// characters of ASCII with NULs between them, or by an XML declaration.
func wide(head []byte, _ bool) (f Format, more bool) {
	for _, m := range marks {
		switch {
		case bytes.HasPrefix(head, []byte(m.bytes)):
			return m.format, false
		case len(head) < len(m.bytes) && m.bytes[:len(head)] == string(head):
			more = true
		}
	}
	if len(head) == 1 && (head[0] == '\n' || head[0] == ' ') {
		return "", more // a heartbeat, which does not wait
	}
	for _, p := range []struct {
		format   Format
		unit, at int // a character's width, and where in it the byte is that is not NUL
	}{{UTF32, 4, 0}, {UTF32, 4, 3}, {UTF16, 2, 0}, {UTF16, 2, 1}} {
		switch n := padded(head[:min(len(head), wideSample)], p.unit, p.at); {
		case n == wideSample:
			return p.format, false
		case n > 0:
			more = true
		}
	}
	return "", more
}

// wideSample is how many bytes with NULs between characters are certain.
const wideSample = 8

// padded returns the length of head if it is characters of ASCII, each at one
// place of a unit whose other bytes are NUL; else -1.
func padded(head []byte, unit, at int) int {
	for i, c := range head {
		plain := c >= ' ' && c <= '~' || c == '\t' || c == '\r' || c == '\n'
		if i%unit == at && !plain || i%unit != at && c != 0 {
			return -1
		}
	}
	return len(head)
}
