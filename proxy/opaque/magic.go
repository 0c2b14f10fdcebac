package opaque

import (
	"bytes"
	"compress/flate"
	"encoding/base64"
	"errors"
	"io"
	"unicode/utf8"
)

// magic is the mark that a format begins with.
type magic struct {
	format Format
	bytes  string
	base64 string // the characters that stand for bytes alone
}

// marks are those of character sets.
var marks = []magic{
	{UTF16, "\xfe\xff", ""}, {UTF16, "\xff\xfe", ""}, {UTF32, "\x00\x00\xfe\xff", ""},
	{EBCDIC, "\x4c\x6f\xa7\x94", ""}, // <?xm
}

// magics are those of compressed data and of archives that hold such data.
// Plain tar and cpio are not among them: they are searched as bytes.
var magics = withBase64([]magic{
	{format: "gzip", bytes: "\x1f\x8b\x08"},
	{format: "lzh", bytes: "\x1f\xa0"},
	{format: "pack", bytes: "\x1f\x1e"},
	{format: "zip", bytes: "PK\x03\x04"},
	{format: "zip", bytes: "PK\x05\x06"},
	{format: "zip", bytes: "PK\x07\x08"},
	{format: "zip", bytes: "PK00PK\x03\x04"},
	{format: "zstd", bytes: "\x28\xb5\x2f\xfd"},
	{format: "zstd", bytes: "\x37\xa4\x30\xec"}, // a dictionary
	{format: "xz", bytes: "\xfd7zXZ\x00"},
	{format: "lzma", bytes: "\x5d\x00\x00"},
	{format: "lzip", bytes: "LZIP"},
	{format: "7z", bytes: "7z\xbc\xaf\x27\x1c"},
	{format: "rar", bytes: "Rar!\x1a\x07"},
	{format: "lz4", bytes: "\x04\x22\x4d\x18"},
	{format: "lz4", bytes: "\x03\x21\x4c\x18"},
	{format: "lz4", bytes: "\x02\x21\x4c\x18"},
	{format: "snappy", bytes: "\xff\x06\x00\x00sNaPpY"},
	{format: "lzo", bytes: "\x89LZO\x00\x0d\x0a\x1a\x0a"},
	{format: "lrzip", bytes: "LRZI"},
	{format: "lzfse", bytes: "bvx2"},
	{format: "lzfse", bytes: "bvxn"},
	{format: "lzfse", bytes: "bvx1"},
	{format: "cab", bytes: "MSCF\x00\x00\x00\x00"},
	{format: "szdd", bytes: "SZDD\x88\xf0\x27\x33"},
	{format: "rpm", bytes: "\xed\xab\xee\xdb"},
	{format: "deb", bytes: "!<arch>\ndebian-binary"},
	{format: "xar", bytes: "xar!\x00"},
})

// magicsByFirst is magics by their first byte.
var magicsByFirst = func() (by [256][]magic) {
	for _, m := range magics {
		by[m.bytes[0]] = append(by[m.bytes[0]], m)
	}
	return by
}()

// withBase64 completes all, and adds the marks that come in many variants.
func withBase64(all []magic) []magic {
	for level := '1'; level <= '9'; level++ {
		all = append(all, magic{format: "bzip2", bytes: "BZh" + string(level) + "1AY&SY"},
			magic{format: "bzip2", bytes: "BZh" + string(level) + "\x17\x72\x45\x38\x50\x90"})
	}
	for width := byte(9); width <= 16; width++ {
		all = append(all, magic{format: "compress", bytes: string([]byte{0x1f, 0x9d, width})},
			magic{format: "compress", bytes: string([]byte{0x1f, 0x9d, 0x80 | width})})
	}
	for low := range byte(16) {
		all = append(all, magic{format: "zstd", bytes: string([]byte{0x50 | low, 0x2a, 0x4d, 0x18})}) // skippable, and LZ4's
	}
	for old := byte(0x22); old <= 0x27; old++ {
		all = append(all, magic{format: "zstd", bytes: string([]byte{old, 0xb5, 0x2f, 0xfd})}) // before version 0.8
	}
	for i := range all {
		n := len(all[i].bytes) * 8 / 6
		all[i].base64 = base64.RawStdEncoding.EncodeToString([]byte(all[i].bytes))[:n]
	}
	return all
}

const (
	leastZlib    = 16 // so much of a zlib stream is decoded before it counts as one, if it comes
	leastDeflate = 64 // the same without zlib's header, where text and numbers may look alike
)

// deflated recognises DEFLATE (RFC 1951), with the header of zlib (RFC 1950)
// or without, by decoding what is there.
func deflated(head []byte, final bool) (f Format, more bool) {
	zlib := head[0]&0x8f == 8 && (len(head) == 1 || (int(head[0])<<8|int(head[1]))%31 == 0)
	if zlib && len(head) < leastZlib && !final {
		return "", true
	}
	if isText(head) {
		return "", false
	}
	if zlib && zlibStream(head) {
		return "zlib", false
	}
	if kind := head[0] >> 1 & 3; len(head) >= leastDeflate && (kind == 1 || kind == 2) {
		if text, ok := inflates(head, nil); ok && isText(text) { // other data may look alike
			return "deflate", false
		}
	}
	return "", false
}

// zlibStream decodes what is behind a header of zlib.
func zlibStream(head []byte) bool {
	const hasDictionary = 0x20
	switch {
	case len(head) < 3:
		return false
	case head[1]&hasDictionary == 0:
		_, ok := inflates(head[2:], nil)
		return ok
	}
	// Which dictionary it is decides what comes out, and not whether it does.
	if head[0] != 0x78 || len(head) <= 6 {
		return false
	}
	_, ok := inflates(head[6:], make([]byte, 32<<10))
	return ok
}

// inflates returns what data decodes to, and whether data is the beginning of
// a DEFLATE stream, or all of one and not much else.
func inflates(data, dictionary []byte) (out []byte, ok bool) {
	in := bytes.NewReader(data)
	out, err := io.ReadAll(io.LimitReader(flate.NewReaderDict(in, dictionary), 64<<10))
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return out, true
	}
	return out, err == nil && in.Len() <= 8 // the checksum of zlib or gzip
}

// isText reports UTF-8 without control characters that text does not have.
// Compressed data of any length hold some.
func isText(head []byte) bool {
	for len(head) > 0 {
		if c := head[0]; c >= ' ' && c <= '~' { // as nearly all of it is
			head = head[1:]
			continue
		}
		r, n := utf8.DecodeRune(head)
		if r == utf8.RuneError && n == 1 && len(head) >= utf8.UTFMax {
			return false
		}
		if r == utf8.RuneError && n == 1 && utf8.FullRune(head) {
			return false
		}
		if r < ' ' && r != '\t' && r != '\n' && r != '\r' && r != '\f' && r != '\b' && r != '\x1b' || r == 0x7f {
			return false
		}
		head = head[n:]
	}
	return true
}
