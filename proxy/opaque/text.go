package opaque

import (
	"bytes"
	"unicode/utf8"
)

// Binary is the format of a body whose type names text and whose first bytes are none: Brotli, LZ4 blocks, raw DEFLATE
// and whatever else has no signature.
const Binary Format = "binary"

// ExpectText makes b judge a body whose type names text by two rules more: one whose first bytes are no text is
// [Binary], and one in which eight characters in a row have NULs between them, wherever that is, is in wide characters.
// It is called before the first Read and Await.
func (b *Body) ExpectText() { b.text = true }

// leastText is how many bytes are looked at before a body with a control character in them counts as text.
const leastText = 64

// noText reports whether head, the beginning of what should be text, is something else: a log may have some control
// characters in it, and Latin-1 some bytes that are no UTF-8. What is compressed has a control character in ten bytes,
// and half of it is no UTF-8.
func noText(head []byte, final bool) (is, more bool) {
	head = head[blank(head):]
	head = head[:min(len(head), sniffed)]
	controls, odd := 0, 0
	for rest := head; len(rest) > 0; {
		r, n := utf8.DecodeRune(rest)
		switch {
		case r == utf8.RuneError && n == 1:
			if final || utf8.FullRune(rest) {
				odd++
			}
		case r < ' ' && bytes.IndexByte([]byte("\t\n\v\f\r\a\b\x1b"), byte(r)) < 0, r == 0x7f:
			controls++
		}
		rest = rest[n:]
	}
	if controls == 0 {
		return false, false
	}
	if len(head) < leastText && !final {
		return false, true
	}
	return controls > 1 && 32*controls >= len(head) || 4*odd >= len(head), false
}

// rhythm finds wide characters in what should be text.
type rhythm struct {
	nuls  int // that have come since the last character
	width int // of the last character, with the NULs in front of it
	beats int // how many of that width came in a row
}

// mostBeats is how many characters of ASCII in a row are certain to be wide.
const mostBeats = 8

// look returns the format that data, the next bytes of the body, show.
func (r *rhythm) look(data []byte) Format {
	if r.nuls == 0 {
		i := bytes.IndexByte(data, 0)
		if i < 0 {
			*r = rhythm{}
			return ""
		}
		data = data[i:]
	}
	for _, c := range data {
		if c == 0 {
			r.nuls++
			continue
		}
		width := r.nuls + 1
		r.nuls = 0
		if width != r.width {
			r.width, r.beats = width, 0
		}
		if r.beats++; c > '~' || width != 2 && width != 4 {
			r.beats = 0
		}
		if r.beats == mostBeats {
			return map[int]Format{2: UTF16, 4: UTF32}[width]
		}
	}
	return ""
}
