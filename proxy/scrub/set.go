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
	"encoding/binary"
	"encoding/hex"
	"net/http"
	"slices"
	"strings"
)

// Window is the shortest run of a long secret that is a hit.
const Window = 16

// gram is what the filter looks at: no secret may be shorter.
const gram = 8

// Needle is one secret to wipe out.
type Needle struct {
	Secret   []byte
	Username string // of basic authentication; "" when none
}

// Set is what a session's answers are searched for. It is immutable and safe
// for concurrent use. A nil Set finds nothing. It never prints its contents.
type Set struct {
	plain   patterns // looked for in every decoding
	wrapped patterns // base64, looked for without white space
	hex     patterns // lower case, looked for without separators
}

// patterns is one alphabet's needles, prepared for search.
type patterns struct {
	windows map[[Window]byte]struct{}
	whole   map[string]struct{} // needles shorter than Window
	lengths []int               // of whole, each once
	filter  []uint64            // bitmap over the hashes of every window's first gram
	text    []byte              // the long needles, between separators
	single  [256]bool           // bytes of text
	heads   []string            // the short needles again
}

// separator stands between needles and for symbols that no needle holds.
const separator = 0xff

const filterBits = 18

// String hides.
func (*Set) String() string { return "[scrub set]" }

// GoString hides.
func (*Set) GoString() string { return "[scrub set]" }

// NewSet prepares a search. Secrets shorter than 8 bytes are left out: the
// vault refuses them.
func NewSet(needles []Needle) *Set {
	var plain, wrapped, hexed [][]byte
	for _, n := range needles {
		if len(n.Secret) < gram {
			continue
		}
		plain = append(plain, n.Secret)
		if bytes.ContainsRune(n.Secret, ' ') { // form encoding
			plain = append(plain, bytes.ReplaceAll(n.Secret, []byte(" "), []byte("+")))
		}
		b64 := base64Forms(n.Secret, nil)
		if n.Username != "" {
			b64 = append(b64, base64Forms(n.Secret, []byte(n.Username+":"))...)
		}
		plain, wrapped = append(plain, b64...), append(wrapped, b64...)
		digits := []byte(hex.EncodeToString(n.Secret))
		plain = append(plain, digits, bytes.ToUpper(digits))
		hexed = append(hexed, digits)
	}
	if len(plain) == 0 {
		return nil
	}
	return &Set{plain: prepare(plain), wrapped: prepare(wrapped), hex: prepare(hexed)}
}

// base64Forms are the encodings of secret behind prefix, in both alphabets:
// whole, and the characters that are certain at each of the three alignments
// inside something longer.
func base64Forms(secret, prefix []byte) [][]byte {
	var forms [][]byte
	for _, enc := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		whole := []byte(enc.EncodeToString(append(bytes.Clone(prefix), secret...)))
		// Behind a prefix only what the secret has a part in: the name alone is no secret.
		forms = append(forms, whole[len(prefix)*8/6:])
		for shift := range 3 {
			if len(prefix) > 0 {
				break
			}
			padded := enc.EncodeToString(append(make([]byte, shift), secret...))
			from := (shift*8 + 5) / 6           // the first character that is the secret's alone
			to := (shift + len(secret)) * 8 / 6 // the last
			forms = append(forms, []byte(padded[from:to]))
		}
	}
	return slices.DeleteFunc(forms, func(f []byte) bool { return len(f) < gram })
}

func prepare(needles [][]byte) patterns {
	p := patterns{windows: map[[Window]byte]struct{}{}, whole: map[string]struct{}{}, filter: make([]uint64, 1<<filterBits/64)}
	p.text = append(p.text, separator)
	for _, n := range needles {
		if len(n) < Window {
			if _, known := p.whole[string(n)]; !known {
				p.whole[string(n)] = struct{}{}
				p.heads = append(p.heads, string(n))
			}
			if !slices.Contains(p.lengths, len(n)) {
				p.lengths = append(p.lengths, len(n))
			}
			p.note(n)
			continue
		}
		for i := 0; i+Window <= len(n); i++ {
			p.windows[[Window]byte(n[i:])] = struct{}{}
			p.note(n[i:])
		}
		for _, c := range n {
			p.single[c] = true
		}
		p.text = append(append(p.text, n...), separator)
	}
	return p
}

func (p *patterns) note(at []byte) {
	h := hash(at)
	p.filter[h/64] |= 1 << (h % 64)
}

// hash spreads the first gram of b over the filter.
func hash(b []byte) uint64 {
	return binary.LittleEndian.Uint64(b) * 0x9e3779b97f4a7c15 >> (64 - filterBits)
}

// find calls hit for every window and short needle in the symbols.
func (p *patterns) find(symbols []byte, hit func(from, to int)) {
	if len(p.text) == 1 && len(p.heads) == 0 {
		return
	}
	for i := 0; i+gram <= len(symbols); i++ {
		h := hash(symbols[i:])
		if p.filter[h/64]&(1<<(h%64)) == 0 {
			continue
		}
		if i+Window <= len(symbols) {
			if _, ok := p.windows[[Window]byte(symbols[i:])]; ok {
				hit(i, i+Window)
			}
		}
		for _, n := range p.lengths {
			if i+n <= len(symbols) {
				if _, ok := p.whole[string(symbols[i:i+n])]; ok {
					hit(i, i+n)
				}
			}
		}
	}
}

// open is how many of the last symbols may be the beginning of a hit.
func (p *patterns) open(symbols []byte) int {
	n := 0
	// The end of a run of a needle is a run of it too, so the first length
	// that is none ends the search.
	for n < Window-1 && n < len(symbols) {
		tail := symbols[len(symbols)-n-1:]
		if !p.single[tail[0]] || !bytes.Contains(p.text, tail) {
			break
		}
		n++
	}
	for _, head := range p.heads {
		for l := min(len(head)-1, len(symbols)); l > n; l-- {
			if strings.HasPrefix(head, string(symbols[len(symbols)-l:])) {
				n = l
				break
			}
		}
	}
	return n
}

// Text gives text without secrets, and how many hits there were.
func (s *Set) Text(text string) (string, int) {
	if s == nil || len(text) < gram {
		return text, 0
	}
	sc := Scanner{set: s}
	out := string(sc.Write([]byte(text)))
	return out + string(sc.Flush()), sc.hits
}

// Header wipes secrets out of every value. A field whose name holds one is
// dropped.
func (s *Set) Header(h http.Header) int {
	if s == nil {
		return 0
	}
	hits := 0
	for name, values := range h {
		// A name comes canonicalised: its letters' case is not the secret's.
		if _, n := s.folded(name); n > 0 {
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

// folded looks for secrets whatever the letters' case.
func (s *Set) folded(name string) (string, int) {
	lower := strings.ToLower(name)
	if len(lower) < gram {
		return name, 0
	}
	for _, needle := range bytes.Split(bytes.ToLower(s.plain.text), []byte{separator}) {
		for i := 0; i+Window <= len(needle); i++ {
			if strings.Contains(lower, string(needle[i:i+Window])) {
				return "", 1
			}
		}
	}
	for _, head := range s.plain.heads {
		if strings.Contains(lower, strings.ToLower(head)) {
			return "", 1
		}
	}
	return name, 0
}
