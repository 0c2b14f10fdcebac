package corpus

import (
	"encoding/hex"
	"fmt"
)

// Random returns random bytes, as compressed data and images are.
func Random(seed uint64, size int) []byte {
	w := newWriter(seed, size)
	w.b = w.b[:size]
	w.random(w.b)
	return w.b
}

// Base64 returns one value in base64, without a line end.
func Base64(seed uint64, size int) []byte {
	return fill(seed, size, func(w *writer) { w.base64(768) })
}

// Base64Lines returns base64 in lines of 76 columns (RFC 2045 section 6.8).
func Base64Lines(seed uint64, size int) []byte {
	return fill(seed, size, func(w *writer) {
		w.base64(57)
		w.text("\r\n")
	})
}

// PlainHex returns hexadecimal digits without a separator.
func PlainHex(seed uint64, size int) []byte {
	return fill(seed, size, func(w *writer) { w.hex(512) })
}

// HexDump returns a dump as xxd prints it: offset, sixteen bytes in groups of two, and the same as text.
func HexDump(seed uint64, size int) []byte {
	return fill(seed, size, func(w *writer) {
		line := w.bytes(16)
		w.b = fmt.Appendf(w.b, "%08x:", 16*w.n)
		w.n++
		for i := 0; i < len(line); i += 2 {
			w.text(" ")
			w.b = hex.AppendEncode(w.b, line[i:i+2])
		}
		w.text("  ")
		for _, c := range line {
			if c < ' ' || c > '~' {
				c = '.'
			}
			w.b = append(w.b, c)
		}
		w.text("\n")
	})
}
