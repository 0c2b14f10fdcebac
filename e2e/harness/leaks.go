package harness

import (
	"bytes"
	"compress/gzip"
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"html"
	"io"
	"slices"
	"strconv"
	"strings"
)

// NewSecret returns a random secret of 40 characters, with most of the specials
// about which encodings differ.
func NewSecret() string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	const special = `+/=%&"\`
	var b [40]byte
	_, _ = rand.Read(b[:]) // does not fail
	for i := range b {
		if i%6 == 4 { // never first or last: those are for edges
			b[i] = special[(i/6)%len(special)]
		} else {
			b[i] = plain[int(b[i])%len(plain)]
		}
	}
	return string(b[:])
}

// Fragment is the shortest run of a secret that counts as a leak.
const Fragment = 16

// Leaks finds secrets in outputs. It shares no code with the product: it takes
// encodings off and looks for every run of a secret, in the clear, in base64 at
// each alignment, and in hexadecimal. The zero value finds nothing.
type Leaks struct {
	needles map[uint64][]needle // by their first eight bytes
	marks   []uint64            // a bit for each of those: most of what is searched needs no look into the map
}

// The marks are as many as fit into a processor's cache: a thousand logins have a million needles.
const markBits = 23

// mark returns the word and the bit of a needle that begins with key.
func mark(key uint64) (word, bit uint64) {
	hash := key * 0x9e3779b97f4a7c15 >> (64 - markBits)
	return hash / 64, 1 << (hash % 64)
}

type needle struct {
	text string
	of   string
}

// NewLeaks returns an index of secrets by name. Each is at least [Fragment]
// bytes long.
func NewLeaks(secrets map[string]string) *Leaks {
	x := &Leaks{}
	for name, s := range secrets {
		x.Add(name, s)
	}
	return x
}

// Add adds a secret.
func (x *Leaks) Add(name, s string) {
	inHex, inBase64, inBase64URL := name+" in hex", name+" in base64", name+" in base64url"
	urls := strings.NewReplacer("+", "-", "/", "_")
	for i := 0; i+Fragment <= len(s); i++ {
		w := s[i : i+Fragment]
		x.add(name, w)
		x.add(inHex, hex.EncodeToString([]byte(w)))
		// The characters that this run has for itself at every alignment.
		for shift := range 3 {
			bits := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("\x00", shift) + w))
			from, to := []int{0, 2, 3}[shift], (shift+Fragment)*8/6
			inner := bits[from:to]
			x.add(inBase64, inner)
			x.add(inBase64URL, urls.Replace(inner))
		}
	}
}

func (x *Leaks) add(of, text string) {
	if x.needles == nil {
		x.needles, x.marks = map[uint64][]needle{}, make([]uint64, 1<<markBits/64)
	}
	key := binary.LittleEndian.Uint64([]byte(text))
	word, bit := mark(key)
	x.marks[word] |= bit
	if !slices.Contains(x.needles[key], needle{text, of}) {
		x.needles[key] = append(x.needles[key], needle{text, of})
	}
}

// Scan names the secret that data contains as it is; "" if there is none.
func (x *Leaks) Scan(data []byte) string {
	if len(x.needles) == 0 {
		return ""
	}
	for i := 0; i+8 <= len(data); i++ {
		key := binary.LittleEndian.Uint64(data[i:])
		if word, bit := mark(key); x.marks[word]&bit == 0 {
			continue
		}
		for _, n := range x.needles[key] {
			if bytes.HasPrefix(data[i:], []byte(n.text)) {
				return n.of
			}
		}
	}
	return ""
}

// Find names the secret that data contains in any encoding, and which; "" if there is none.
func (x *Leaks) Find(data []byte) string {
	if of := x.Scan(data); of != "" {
		return of + ", as it is"
	}
	for _, outer := range layers {
		once := outer.off(data)
		if bytes.Equal(once, data) {
			continue // what is below it is read without it
		}
		if of := x.Scan(once); of != "" {
			return of + ", " + outer.name
		}
		for _, inner := range layers {
			if twice := inner.off(once); !bytes.Equal(twice, once) {
				if of := x.Scan(twice); of != "" {
					return of + ", " + inner.name + " in " + outer.name
				}
			}
		}
	}
	return ""
}

// layers are the encodings that are taken off.
var layers = []struct {
	name string
	off  func([]byte) []byte
}{
	{"percent", unpercent}, {"backslash", unbackslash}, {"entities", unentity}, {"quoted-printable", unquoted},
	{"without white space", squeezed}, {"without separators", unseparated}, {"gzip", ungzipped},
}

func unpercent(p []byte) []byte {
	if bytes.IndexByte(p, '%') < 0 {
		return p
	}
	out := make([]byte, 0, len(p))
	for i := 0; i < len(p); i++ {
		if p[i] == '%' && i+2 < len(p) {
			if v, err := strconv.ParseUint(string(p[i+1:i+3]), 16, 8); err == nil {
				out = append(out, byte(v))
				i += 2
				continue
			}
		}
		out = append(out, p[i])
	}
	return out
}

func unbackslash(p []byte) []byte {
	if bytes.IndexByte(p, '\\') < 0 {
		return p
	}
	out := make([]byte, 0, len(p))
	for i := 0; i < len(p); i++ {
		if p[i] != '\\' || i+1 >= len(p) {
			out = append(out, p[i])
			continue
		}
		i++
		width := 0
		switch p[i] {
		case 'u':
			width = 4
		case 'x':
			width = 2
		}
		if width > 0 && i+width < len(p) {
			if v, err := strconv.ParseUint(string(p[i+1:i+1+width]), 16, 16); err == nil {
				out = append(out, string(rune(v))...)
				i += width
				continue
			}
		}
		out = append(out, p[i])
	}
	return out
}

func unentity(p []byte) []byte {
	if bytes.IndexByte(p, '&') < 0 {
		return p
	}
	return []byte(html.UnescapeString(string(p)))
}

func unquoted(p []byte) []byte {
	p = bytes.ReplaceAll(bytes.ReplaceAll(p, []byte("=\r\n"), nil), []byte("=\n"), nil)
	return unpercent(bytes.ReplaceAll(p, []byte("="), []byte("%")))
}

func squeezed(p []byte) []byte { return without(p, " \t\r\n") }

// unseparated joins the bytes of a dump: 41:42, 0x41 0x42, \x41\x42, 41-42.
func unseparated(p []byte) []byte {
	p = bytes.ReplaceAll(bytes.ReplaceAll(p, []byte("0x"), nil), []byte(`\x`), nil)
	return bytes.ToLower(without(p, " ,:;-\"'\t\r\n"))
}

// without drops bytes.
func without(p []byte, dropped string) []byte {
	var drop [256]bool
	for _, b := range []byte(dropped) {
		drop[b] = true
	}
	out := make([]byte, 0, len(p))
	for _, b := range p {
		if !drop[b] {
			out = append(out, b)
		}
	}
	return out
}

func ungzipped(p []byte) []byte {
	var out []byte
	for rest := p; ; {
		i := bytes.Index(rest, []byte{0x1f, 0x8b})
		if i < 0 {
			return out
		}
		rest = rest[i:]
		if r, err := gzip.NewReader(bytes.NewReader(rest)); err == nil {
			r.Multistream(false)
			got, _ := io.ReadAll(io.LimitReader(r, 1<<20))
			out = append(out, got...)
		}
		rest = rest[2:]
	}
}
