// Package opaque recognises content in which a search for a secret finds nothing
// although it contains the secret: compressed data, archives, and text in characters
// wider than a byte.
//
// [Sniff] returns the format of the first bytes of a body. [NewBody] reads them ahead,
// so that a response can be rejected before any of it is sent. [Parts] checks each
// part of a multipart body, [Messages] each message of a gRPC body, to the end.
//
// Formats without a magic number are not recognised, Brotli, LZ4 blocks, raw DEFLATE
// that is shorter than 64 bytes, encrypted data, unless the body's type names text
// ([Body.ExpectText]).
package opaque

import "bytes"

// Format is the name of a recognised format: "gzip", "zip", "utf-16". The empty
// Format stands for content that can be searched.
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

// sniffed is how many bytes at the beginning of a body are examined.
const sniffed = 512

// Sniff reports the format that head, the beginning of some content, shows
// behind white space, which clients and shells skip.
// If more is true, head is a proper prefix of a format's mark, and the next
// bytes decide. With final, nothing follows head and more is false.
func Sniff(head []byte, final bool) (f Format, more bool) {
	head = head[blank(head):]
	if !final && len(head) < len(utf8Mark) && bytes.HasPrefix([]byte(utf8Mark), head) {
		return "", true
	}
	head = head[:min(len(head), sniffed)]
	if len(head) == 0 {
		return "", false
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

const utf8Mark = "\xef\xbb\xbf"

// blank returns how much of the beginning of head is white space, with a mark
// of UTF-8 in front of it.
func blank(head []byte) int {
	rest := bytes.TrimPrefix(head, []byte(utf8Mark))
	return len(head) - len(bytes.TrimLeft(rest, " \t\r\n"))
}

// packed recognises compressed data and archives as they are.
func packed(head []byte, final bool) (f Format, more bool) {
	for _, m := range magicsByFirst[head[0]] {
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
