// Package scrub redacts secrets in a byte stream as it passes: every byte of a hit
// is replaced by '*', so that lengths stay the same.
//
// [NewSet] prepares the search for the secrets of a session. [Set.Reader] wraps a
// body, [Set.Header] redacts header fields and [Set.Text] a string;
// [Set.NewScanner] is for streams that are not an io.Reader.
//
// What is found is an enumerated set of encodings: a secret as it is; escaped for
// URLs, JSON, HTML or quoted-printable, singly or doubly; in hexadecimal with
// the usual separators; as an array of decimal numbers; in base64 or base32 of
// either alphabet at any alignment, broken into lines or not; all of these in
// either case; and every run of Window or more symbols of any of them. A
// shorter run is never a hit, so that a secret cannot be learned by guessing a
// few bytes of it at a time. docs/scrubbing.md has the full specification.
//
// Only bytes that may be the beginning of a hit are held back.
//
// The search has two parts. The first passes over all data once, and records what to redact:
//
//   - What stands in the data as it is, is sampled: one run of 5 bytes in 12 is looked up in a
//     Bloom filter of all such runs of the secrets (sieve.go, patterns.go).
//   - Each block of 64 bytes is turned into masks of the classes of its bytes (masks.go). From
//     them follow the long tokens, the line ends between tokens, and the long dumps of
//     digits (walk.go); all else cannot contain an encoding or an escape that matters.
//   - A token is sampled for base64, base32 and hexadecimal digits. If escapes are in it, it
//     is decoded and the result sampled; so are tokens that continue after a line end
//     (tokens.go, layer.go) and the numbers of dumps (dumps.go).
//
// A sample that is in the filter is followed by a look at its neighbours, and then by a
// comparison with the secrets. Escapes are decoded in two layers, those of all syntaxes at once
// (segments.go). That is right for a hit in any syntax, except where what looks like an escape
// of another one takes the first bytes of the hit with it: such places are searched by
// themselves (swallowed.go). Only where a dump seems to contain a hit it is decoded once more,
// with the place of each number (regions.go).
//
// The second part searches the few bytes at the end of a piece that may be the beginning of a
// hit (tail.go): it decodes them in every way, and records what to hold back (search.go, view.go,
// decode.go). Its work is bounded for each byte, and so is that of the first.
package scrub

import (
	"encoding/hex"
	"sync"
)

// Window is the length in bytes of the shortest run of a secret that is a hit. In
// base64, base32 and hexadecimal a run needs the symbols that encode so many bytes:
// with fewer, an attacker who has the beginning of a secret could guess the rest
// byte by byte.
const (
	Window       = 16
	base64Window = 20 // the characters that 16 bytes have for themselves at every alignment
	base32Window = 24 // the same
	hexWindow    = 2 * Window
)

// Credential is one secret to redact.
type Credential struct {
	Secret   []byte
	Username string // for basic authentication; "": none
}

// Set is the secrets that a session's responses are searched for. It is immutable
// and safe for concurrent use. A nil Set finds nothing. It never prints its
// contents.
type Set struct {
	text   patterns // searched for in every decoding
	base64 patterns // the same, and with white space removed
	base32 patterns // searched for as it is, and with white space removed
	hex    patterns // searched for without separators

	// What the scanner looks for in data as it is: the other encodings' runs, the
	// classes of bytes, and the lengths of the shortest token and dump with a hit.
	coded       sieve
	encodings   [3]*patterns // base64, base32 and hex
	classes     *classTables
	separates   [256]bool // bytes that are in no hit, and in no escape
	between     int       // a byte that ends every hit; -1: there is none
	symbols     [256]bool // bytes that are in a hit, but for those of dumps
	plain       bool      // no secret contains a byte that begins an escape
	leastToken  int
	leastDigits int
	wing        int // how many symbols of a hit are on one side of a line end at most

	idle       sync.Pool // of *Scanner
	pieces     sync.Pool // of *[]byte, for scanners that are not idle
	workspaces sync.Pool // of *workspace
}

// String returns a placeholder.
func (*Set) String() string { return "[scrub set]" }

// GoString returns a placeholder.
func (*Set) GoString() string { return "[scrub set]" }

// NewSet returns the set of these secrets, nil if there are none. It ignores secrets
// shorter than 8 bytes, which the vault rejects.
func NewSet(credentials []Credential) *Set {
	var text, b64, b32, digits []encoding
	s := &Set{}
	for _, n := range credentials {
		if len(n.Secret) < gramSize {
			continue
		}
		short := len(n.Secret) < Window
		text = append(text, textEncodings(n.Secret)...)
		b64 = append(b64, base64Encodings(n.Secret, nil)...)
		if n.Username != "" {
			b64 = append(b64, base64Encodings(n.Secret, []byte(n.Username+":"))...)
		}
		b32 = append(b32, base32Encodings(n.Secret)...)
		digits = append(digits, encoding{symbols: []byte(hex.EncodeToString(n.Secret)), short: short})
	}
	if len(text) == 0 {
		return nil
	}
	s.text = prepare(Window, text, newSieve(symbolsOf(text)))
	s.coded = newSieve(symbolsOf(b64, b32, digits))
	s.base64, s.base32 = prepare(base64Window, b64, s.coded), prepare(base32Window, b32, s.coded)
	s.hex = prepare(hexWindow, digits, s.coded)
	// A group of base64 has 16 characters.
	s.coded.least = min(groupSize, s.base64.shortest(), s.base32.shortest(), s.hex.shortest())
	s.encodings = [...]*patterns{&s.base64, &s.base32, &s.hex}
	s.leastToken = min(Window, s.text.shortest(), s.base64.shortest(), s.base32.shortest())
	s.leastDigits = s.hex.shortest()
	s.wing = max(s.text.most, s.base64.most, s.base32.most) - 1
	s.classes = tables(&s.text, &s.base64, &s.base32)
	for c := range s.separates {
		s.symbols[c] = s.text.any[c] || s.base64.any[c] || s.base32.any[c]
		s.separates[c] = !s.classes.is(inToken, byte(c)) && classOf[c]&blank == 0
	}
	s.between = s.findBetween()
	s.plain = !s.text.any['%'] && !s.text.any['\\'] && !s.text.any['&']
	return s
}

// Text returns text with its secrets redacted, and the number of hits.
func (s *Set) Text(text string) (string, int) {
	if s == nil || len(text) < s.leastToken { // each symbol of a hit takes a byte or more
		return text, 0
	}
	sc := s.borrow()
	defer s.giveBack(sc)
	copy(sc.room(len(text)), text)
	sc.data = sc.data[:len(text)]
	sc.search(true)
	if len(sc.hits) == 0 {
		return text, 0
	}
	return string(sc.release(len(text), len(text))), sc.count
}

// borrow returns a scanner for a new stream.
func (s *Set) borrow() *Scanner {
	if sc, ok := s.idle.Get().(*Scanner); ok {
		return sc
	}
	return s.NewScanner()
}

// giveBack resets sc for another stream.
func (s *Set) giveBack(sc *Scanner) {
	sc.reset()
	s.idle.Put(sc)
}
