// Package scrub wipes secrets out of a byte stream as it passes: every byte of
// a hit becomes '*', so that lengths stay true.
//
// What is found is an enumerated set of forms: a secret as it is; escaped for
// URLs, JSON, HTML or quoted-printable, singly or doubly; in hexadecimal with
// the usual separators; as an array of decimal numbers; in base64 or base32 of
// either alphabet at any alignment, broken into lines or not; all of these in
// either case; and every run of Window or more symbols of any of them. A
// shorter run is never a hit, so that a secret cannot be learned by guessing a
// few bytes of it at a time. docs/scrubbing.md is the promise in full.
//
// Nothing is held back but what may be the beginning of a hit.
package scrub

import (
	"bytes"
	"encoding/hex"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
)

// Window is the shortest run of a secret that is a hit. In base64 and in
// hexadecimal it takes the symbols that so many bytes take: fewer would let
// somebody who knows how a secret begins guess it byte by byte.
const (
	Window       = 16
	base64Window = 20 // the characters that 16 bytes have for themselves at every alignment
	base32Window = 24 // the same
	hexWindow    = 2 * Window
)

// Needle is one secret to wipe out.
type Needle struct {
	Secret   []byte
	Username string // of basic authentication; "" when none
}

// Set is what a session's answers are searched for. It is immutable and safe
// for concurrent use. A nil Set finds nothing. It never prints its contents.
type Set struct {
	text   patterns // looked for in every decoding
	base64 patterns // the same, and with white space left out
	base32 patterns // looked for as it is, and with white space left out
	hex    patterns // looked for without separators

	// The filter in front: what the scanner samples, and how far apart.
	sample    grams
	stride    int
	hexStride int
	quote     bool // some secret holds a quotation mark

	idle       sync.Pool // of *Scanner
	pieces     sync.Pool // of *[]byte, for those that are not idle
	workspaces sync.Pool // of *workspace

	clean  sync.Map // names of fields that hold no secret
	cleans atomic.Int32
}

// String hides.
func (*Set) String() string { return "[scrub set]" }

// GoString hides.
func (*Set) GoString() string { return "[scrub set]" }

// NewSet prepares a search. Secrets shorter than 8 bytes are left out: the
// vault refuses them.
func NewSet(needles []Needle) *Set {
	var text, b64, b32, digits []needle
	s := &Set{}
	for _, n := range needles {
		if len(n.Secret) < gram {
			continue
		}
		short := len(n.Secret) < Window
		text = append(text, textForms(n.Secret)...)
		b64 = append(b64, base64Forms(n.Secret, nil)...)
		if n.Username != "" {
			b64 = append(b64, base64Forms(n.Secret, []byte(n.Username+":"))...)
		}
		b32 = append(b32, base32Forms(n.Secret)...)
		digits = append(digits, needle{symbols: []byte(hex.EncodeToString(n.Secret)), short: short})
		s.quote = s.quote || bytes.ContainsAny(n.Secret, "\"'")
	}
	if len(text) == 0 {
		return nil
	}
	s.text, s.base64 = prepare(Window, text), prepare(base64Window, b64)
	s.base32, s.hex = prepare(base32Window, b32), prepare(hexWindow, digits)
	s.stride = min(s.text.shortest(), s.base64.shortest(), s.base32.shortest()) - gram + 1
	s.hexStride = s.hex.shortest() / 2
	sampled, size := slices.Concat(text, b64, b32), 0
	for _, n := range sampled {
		size += len(n.symbols)
	}
	s.sample = newGrams(size)
	for _, n := range sampled {
		for i := 0; i+gram <= len(n.symbols); i++ {
			s.sample.note(n.symbols[i:])
		}
	}
	return s
}

// Text gives text without secrets, and how many hits there were.
func (s *Set) Text(text string) (string, int) {
	if s == nil || len(text) < gram {
		return text, 0
	}
	sc := s.borrow()
	defer s.giveBack(sc)
	first := sc.Write([]byte(text))
	if sc.hits == 0 && len(first) == len(text) {
		return text, 0
	}
	out := string(first)
	return out + string(sc.Flush()), sc.hits
}

// borrow gives a scanner at the beginning of a stream.
func (s *Set) borrow() *Scanner {
	if sc, ok := s.idle.Get().(*Scanner); ok {
		return sc
	}
	return s.NewScanner()
}

// giveBack makes sc ready for another stream.
func (s *Set) giveBack(sc *Scanner) {
	sc.reset()
	s.idle.Put(sc)
}

// Header wipes secrets out of every value. A field whose name holds one is
// dropped.
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

// name looks for secrets in the name of a field. Names are few, so that those without any
// are remembered.
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

// maxClean bounds the names that are remembered.
const maxClean = 1024
