// Package scrub wipes secrets out of a byte stream as it passes: every byte of
// a hit becomes '*', so that lengths stay true.
//
// What is found is an enumerated set of forms: a secret as it is; escaped for
// URLs, JSON, HTML or quoted-printable, singly or doubly; in hexadecimal with
// the usual separators; in base64 of either alphabet at any alignment, broken
// into lines or not; and every run of Window or more symbols of any of these.
// A shorter run is never a hit, so that nobody can learn a secret by guessing
// a few bytes of it at a time. docs/scrubbing.md is the promise in full.
//
// Nothing is held back but what may be the beginning of a hit.
package scrub

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// Window is the shortest run of a secret that is a hit. In base64 and in
// hexadecimal it takes the symbols that so many bytes take: fewer would let
// somebody who knows how a secret begins guess it byte by byte.
const (
	Window       = 16
	base64Window = 20 // the characters that 16 bytes have for themselves at every alignment
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
	hex    patterns // lower case, looked for without separators

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
	var text, b64, digits []needle
	s := &Set{}
	for _, n := range needles {
		if len(n.Secret) < gram {
			continue
		}
		short := len(n.Secret) < Window
		text = append(text, needle{symbols: bytes.Clone(n.Secret), short: short})
		if bytes.ContainsRune(n.Secret, ' ') { // form encoding
			text = append(text, needle{symbols: bytes.ReplaceAll(n.Secret, []byte(" "), []byte("+")), short: short})
		}
		b64 = append(b64, base64Forms(n.Secret, nil)...)
		if n.Username != "" {
			b64 = append(b64, base64Forms(n.Secret, []byte(n.Username+":"))...)
		}
		digits = append(digits, needle{symbols: []byte(hex.EncodeToString(n.Secret)), short: short})
		s.quote = s.quote || bytes.ContainsAny(n.Secret, "\"'")
	}
	if len(text) == 0 {
		return nil
	}
	s.text, s.base64, s.hex = prepare(Window, text), prepare(base64Window, b64), prepare(hexWindow, digits)
	s.stride = min(s.text.shortest(), s.base64.shortest()) - gram + 1
	s.hexStride = s.hex.shortest() / 2
	sampled, size := slices.Concat(text, b64), 0
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

// base64Forms are the encodings of secret behind prefix, in both alphabets:
// whole, and the characters that are certain at each of the three alignments
// inside something longer.
func base64Forms(secret, prefix []byte) []needle {
	var forms []needle
	short := len(secret) < Window
	for _, enc := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		whole := []byte(enc.EncodeToString(append(bytes.Clone(prefix), secret...)))
		// Behind a prefix only what the secret has a part in: the name alone is no secret.
		from := len(prefix) * 8 / 6
		forms = append(forms, needle{whole[from:], short, true, 6*from - 8*len(prefix)})
		for shift := range 3 {
			if len(prefix) > 0 {
				break
			}
			padded := enc.EncodeToString(append(make([]byte, shift), secret...))
			from := (shift*8 + 5) / 6           // the first character that is the secret's alone
			to := (shift + len(secret)) * 8 / 6 // the last
			forms = append(forms, needle{[]byte(padded[from:to]), short, true, 6*from - 8*shift})
		}
	}
	return slices.DeleteFunc(forms, func(n needle) bool { return len(n.symbols) < gram })
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

// name looks for secrets in the name of a field. It comes canonicalised: its
// letters' case is not the secret's. Names are few, so that those without any
// are remembered.
func (s *Set) name(name string) int {
	if _, known := s.clean.Load(name); known {
		return 0
	}
	if _, n := s.Text(name); n > 0 {
		return n
	}
	if _, n := s.folded(name); n > 0 {
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

// folded looks for secrets whatever the letters' case.
func (s *Set) folded(name string) (string, int) {
	lower := strings.ToLower(name)
	if len(lower) < gram {
		return name, 0
	}
	for _, p := range []*patterns{&s.text, &s.base64} {
		for _, n := range p.heads {
			n, length := bytes.ToLower(n), min(len(n), p.window)
			for i := 0; i+length <= len(n); i++ {
				if strings.Contains(lower, string(n[i:i+length])) {
					return "", 1
				}
			}
		}
	}
	return name, 0
}
