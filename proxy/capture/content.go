package capture

import (
	"bytes"
	"cmp"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"math/bits"
	"slices"
	"unicode/utf8"

	"github.com/ALRubinger/aileron/proxy/scrub"
)

// content is a body as the file has it.
type content struct {
	data    []byte // redacted; valid until the next body
	cut     string // why it is not whole
	decoded string // the content coding that was removed
}

// text is memory for the bodies of one exchange after the other.
type text struct{ plain, clean []byte }

// of returns a body without its content coding, redacted. What is not whole is decoded as far as it goes: a search for
// secrets does not see into what is compressed.
func (t *text) of(b *body, coding string, sets []*scrub.Set) content {
	c := content{cut: b.cut}
	pieces := b.pieces
	if plain, cut, ok := t.decode(b, coding); ok {
		pieces, c.decoded = [][]byte{plain}, coding
		c.cut = cmp.Or(c.cut, cut)
	}
	t.clean = redact(t.clean[:0], pieces, sets, c.cut != "")
	c.data = t.clean
	return c
}

// decode returns the body without its content coding, why that is not all of what was recorded, and whether it could be
// decoded at all.
func (t *text) decode(b *body, coding string) (plain []byte, cut string, ok bool) {
	if b.kept == 0 {
		return nil, "", false
	}
	var r io.Reader
	switch coding {
	case "gzip", "x-gzip":
		z, err := gzip.NewReader(b.reader())
		if err != nil {
			return nil, "", false
		}
		r = z
	case "deflate": // RFC 9110 section 8.4.1.2: with a header of zlib, which some senders leave out
		if z, err := zlib.NewReader(b.reader()); err == nil {
			r = z
		} else {
			r = flate.NewReader(b.reader())
		}
	default:
		return nil, "", false
	}
	out := bytes.NewBuffer(t.plain[:0])
	_, err := io.Copy(out, io.LimitReader(r, MaxBody+1))
	t.plain = out.Bytes()
	switch {
	case len(t.plain) > MaxBody:
		return t.plain[:MaxBody], cutLong, true
	case errors.Is(err, io.ErrUnexpectedEOF) && len(t.plain) > 0:
		return t.plain, "its content coding ends early", true
	}
	return t.plain, "", err == nil
}

// reader returns a reader of what is recorded.
func (b *body) reader() io.Reader {
	all := make([]io.Reader, len(b.pieces))
	for i, p := range b.pieces {
		all[i] = bytes.NewReader(p)
	}
	return io.MultiReader(all...)
}

// redact appends the pieces of a body to out, without the session's secrets. Of a body that was cut, the end that might
// be the beginning of a secret is dropped, and so is half a character.
func redact(out []byte, pieces [][]byte, sets []*scrub.Set, cut bool) []byte {
	scans := make([]*scrub.Scanner, len(sets))
	for i, set := range sets {
		scans[i] = set.NewScanner()
	}
	// What one search releases is for the next.
	through := func(p []byte, from int) []byte {
		for _, s := range scans[from:] {
			p = s.Write(p)
		}
		return p
	}
	for _, p := range pieces {
		out = append(out, through(p, 0)...)
	}
	if !cut {
		for i, s := range scans {
			out = append(out, through(s.Flush(), i+1)...)
		}
		return out
	}
	for i := 1; i < utf8.UTFMax && i <= len(out); i++ {
		if at := len(out) - i; utf8.RuneStart(out[at]) {
			if !utf8.FullRune(out[at:]) {
				out = out[:at]
			}
			break
		}
	}
	return out
}

// isText reports whether a body can be a JSON string as it is.
func isText(data []byte) bool { return utf8.Valid(data) && bytes.IndexByte(data, 0) < 0 }

// appendText appends the members "text" and, for what is no text, "encoding". Package json would copy a body five
// times.
func appendText(out, data []byte) []byte {
	out = append(out, `"text":"`...)
	if isText(data) {
		return append(appendEscaped(out, data), '"')
	}
	out = base64.StdEncoding.AppendEncode(out, data)
	return append(out, `","encoding":"base64"`...)
}

// appendEscaped appends UTF-8 with the escapes that a JSON string needs (RFC 8259 section 7), eight bytes at a time.
func appendEscaped(out, data []byte) []byte {
	out = slices.Grow(out, len(data)+len(data)/8)
	for len(data) >= 8 {
		w := binary.LittleEndian.Uint64(data)
		out = binary.LittleEndian.AppendUint64(out, w)
		escaped := below(w, ' ') | below(w^repeated*'"', 1) | below(w^repeated*'\\', 1)
		if escaped == 0 {
			data = data[8:]
			continue
		}
		first := bits.TrailingZeros64(escaped) / 8
		out = appendEscape(out[:len(out)-8+first], data[first])
		data = data[first+1:]
	}
	for _, c := range data {
		if c < ' ' || c == '"' || c == '\\' {
			out = appendEscape(out, c)
		} else {
			out = append(out, c)
		}
	}
	return out
}

const repeated = 0x0101010101010101

// below returns a word whose lowest bit that is set is in the first byte of w that is below n, which is 128 at most; 0
// if there is none.
func below(w, n uint64) uint64 { return (w - repeated*n) & ^w & (repeated << 7) }

// appendEscape appends the escape of one character.
func appendEscape(out []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(out, '\\', c)
	case '\n':
		return append(out, `\n`...)
	case '\r':
		return append(out, `\r`...)
	case '\t':
		return append(out, `\t`...)
	}
	const digits = "0123456789abcdef"
	return append(out, '\\', 'u', '0', '0', digits[c>>4], digits[c&15])
}

// appendJSON appends a small value. No value of an entry fails.
func appendJSON(out []byte, v any) []byte {
	text, _ := json.Marshal(v)
	return append(out, text...)
}

// open removes the brace that ends a JSON object, so that members can follow.
func open(object []byte) []byte { return append(object[:len(object)-1], ',') }
