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
package scrub

import (
	"bytes"
	"encoding/hex"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
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

	// The prefilter: what the scanner samples, and how far apart.
	sample    bloomFilter
	stride    int
	hexStride int
	quote     bool // some secret contains a quotation mark

	idle       sync.Pool // of *Scanner
	pieces     sync.Pool // of *[]byte, for scanners that are not idle
	workspaces sync.Pool // of *workspace

	clean  sync.Map // field names that contain no secret
	cleans atomic.Int32
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
		s.quote = s.quote || bytes.ContainsAny(n.Secret, "\"'")
	}
	if len(text) == 0 {
		return nil
	}
	s.text, s.base64 = prepare(Window, text), prepare(base64Window, b64)
	s.base32, s.hex = prepare(base32Window, b32), prepare(hexWindow, digits)
	s.stride = min(s.text.shortest(), s.base64.shortest(), s.base32.shortest()) - gramSize + 1
	s.hexStride = s.hex.shortest() / 2
	sampled, size := slices.Concat(text, b64, b32), 0
	for _, n := range sampled {
		size += len(n.symbols)
	}
	s.sample = newBloomFilter(size)
	for _, n := range sampled {
		for i := 0; i+gramSize <= len(n.symbols); i++ {
			s.sample.add(n.symbols[i:])
		}
	}
	return s
}

// Text returns text with its secrets redacted, and the number of hits.
func (s *Set) Text(text string) (string, int) {
	if s == nil || len(text) < gramSize {
		return text, 0
	}
	sc := s.borrow()
	defer s.giveBack(sc)
	first := sc.Write([]byte(text))
	if sc.count == 0 && len(first) == len(text) {
		return text, 0
	}
	out := string(first)
	return out + string(sc.Flush()), sc.count
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

// Header redacts secrets in every value of h, and removes fields whose names contain
// one. It returns the number of hits.
func (s *Set) Header(h http.Header) int {
	if s == nil {
		return 0
	}
	hits := 0
	for name, values := range h {
		if n := s.name(name); n > 0 {
			delete(h, name)
			hits += n
			continue
		}
		for i, v := range values {
			clean, n := s.Text(v)
			values[i] = clean
			hits += n
		}
	}
	return hits
}

// name returns the number of hits in a field name. Names are few, so clean ones are
// cached.
func (s *Set) name(name string) int {
	if _, known := s.clean.Load(name); known {
		return 0
	}
	if _, n := s.Text(name); n > 0 {
		return n
	}
	if len(name) <= 64 && s.cleans.Load() < maxClean {
		if _, known := s.clean.LoadOrStore(name, struct{}{}); !known {
			s.cleans.Add(1)
		}
	}
	return 0
}

// maxClean bounds the cached names.
const maxClean = 1024
