// Package termsafe makes text safe to print: the content of a response, an archive or
// a file name must neither control the terminal of its reader nor show something
// other than it is.
//
// Wrap an output stream with [NewWriter] and print to it as usual; use [Line] for a
// value that must remain on one line. Escaped are
//
//   - control characters, C0, DEL and C1, except line feed and tab: escape
//     sequences, and carriage return, which overwrites a line;
//   - all format characters (Unicode category Cf): bidirectional marks,
//     embeddings, overrides and isolates, zero-width characters, soft hyphens,
//     byte order marks and tag characters;
//   - line and paragraph separators, U+2028 and U+2029;
//   - the other characters that Unicode ignores by default when it renders
//     text, variation selectors included: they can hide a message in what
//     looks like an ordinary word;
//   - bytes that are not UTF-8, which terminals interpret differently.
//
// A character is escaped as JSON does it, \u202e, or \udb40\udc41 beyond the
// basic plane, and an invalid byte as \x9b. In JSON text all these characters,
// except invalid bytes, can only stand inside strings, so JSON that passes
// through a Writer remains valid and equal in meaning; encoding/json has replaced
// invalid bytes before. Everything else is unchanged, backslashes included: the
// result is for reading, and text that is not JSON cannot be decoded from it.
package termsafe

import (
	"fmt"
	"io"
	"sync"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Unsafe reports whether r is escaped by this package. Line feed and tab are
// not.
func Unsafe(r rune) bool {
	switch {
	case r == '\n' || r == '\t':
		return false
	case r < utf8.RuneSelf:
		return r < ' ' || r == 0x7f
	}
	return r < 0xa0 || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp,
		unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

// Text returns s with its unsafe characters escaped, except line feeds and tabs.
func Text(s string) string { return string(appendSafe(make([]byte, 0, len(s)), s, false)) }

// Line returns s with its unsafe characters escaped, line feeds and tabs included, for
// a value that must not begin another line.
func Line(s string) string { return string(appendSafe(make([]byte, 0, len(s)), s, true)) }

// Writer escapes what is written to it on its way to another writer. It is
// safe for concurrent use; each Write reaches the other writer in one call.
type Writer struct {
	mu   sync.Mutex
	to   io.Writer
	part []byte // the beginning of a character whose end is not written yet
	buf  []byte // reused
}

// NewWriter returns a Writer that writes to w.
func NewWriter(w io.Writer) *Writer { return &Writer{to: w} }

// Write writes p, escaped. It holds back the beginning of a character whose last bytes
// are missing until the next Write.
func (w *Writer) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	text := p
	if len(w.part) > 0 {
		text = append(w.part, p...)
	}
	whole := len(text) - incomplete(text)
	w.part = append([]byte(nil), text[whole:]...)
	if err := w.pass(text[:whole]); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Flush writes the bytes that Write holds back, escaped as bytes that are not UTF-8.
func (w *Writer) Flush() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	text := w.part
	w.part = nil
	return w.pass(text)
}

func (w *Writer) pass(text []byte) error {
	if len(text) == 0 {
		return nil
	}
	w.buf = appendSafe(w.buf[:0], text, false)
	_, err := w.to.Write(w.buf)
	return err
}

// incomplete returns the length of the unfinished character at the end of p.
func incomplete(p []byte) int {
	for i := len(p) - 1; i >= max(0, len(p)-utf8.UTFMax+1); i-- {
		if utf8.RuneStart(p[i]) {
			if utf8.FullRune(p[i:]) {
				return 0
			}
			return len(p) - i
		}
	}
	return 0
}

// appendSafe appends s to b with its unsafe characters escaped.
func appendSafe[T string | []byte](b []byte, s T, oneLine bool) []byte {
	for i := 0; i < len(s); {
		r, size := decode(s[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			b = fmt.Appendf(b, `\x%02x`, s[i])
		case !Unsafe(r) && (!oneLine || r != '\n' && r != '\t'):
			b = append(b, s[i:i+size]...)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			b = fmt.Appendf(b, `\u%04x\u%04x`, high, low)
		default:
			b = fmt.Appendf(b, `\u%04x`, r)
		}
		i += size
	}
	return b
}

func decode[T string | []byte](s T) (rune, int) {
	if s[0] < utf8.RuneSelf {
		return rune(s[0]), 1
	}
	return utf8.DecodeRuneInString(string(s[:min(len(s), utf8.UTFMax)]))
}
