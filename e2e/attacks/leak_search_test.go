package attacks

import (
	"bytes"
	"compress/gzip"
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"html"
	"io"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// newSecrets makes the run's secrets: 40 characters, most of the specials that
// encodings differ about among them.
func newSecrets() map[string]string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	const special = `+/=%&"\`
	pick := func(from string) byte {
		n, err := rand.Int(rand.Reader, big.NewInt(int64(len(from))))
		if err != nil {
			panic(err)
		}
		return from[n.Int64()]
	}
	all := map[string]string{}
	for _, name := range []string{"S1", "S2", "S3", "S4", "S5a", "S5r", "S5c", "S6"} {
		var b []byte
		for i := range 40 {
			if i%6 == 4 { // never first or last: those are for edges
				b = append(b, special[(i/6)%len(special)])
			} else {
				b = append(b, pick(plain))
			}
		}
		all[name] = string(b)
	}
	return all
}

// fragment is the shortest run of a secret that counts as a leak.
const fragment = 16

// leakIndex finds secrets in what the box received. It shares no code with
// the product: it takes encodings off and looks for every run of a secret,
// in the clear, in base64 at each alignment, and in hexadecimal.
type leakIndex struct {
	needles map[uint64][]needle
}

type needle struct {
	text string
	of   string
}

func newLeakIndex(secrets map[string]string) *leakIndex {
	x := &leakIndex{needles: map[uint64][]needle{}}
	for name, s := range secrets {
		x.addAll(name, s)
	}
	x.addAll("S4", "user:"+secrets["S4"])
	return x
}

func (x *leakIndex) addAll(name, s string) {
	for i := 0; i+fragment <= len(s); i++ {
		w := s[i : i+fragment]
		x.add(name, w)
		x.add(name+" in hex", hex.EncodeToString([]byte(w)))
		// The characters that this run has for itself at every alignment.
		for shift := range 3 {
			bits := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("\x00", shift) + w))
			from, to := []int{0, 2, 3}[shift], (shift+fragment)*8/6
			inner := bits[from:to]
			x.add(name+" in base64", inner)
			x.add(name+" in base64url", strings.NewReplacer("+", "-", "/", "_").Replace(inner))
		}
	}
}

func (x *leakIndex) add(of, text string) {
	key := binary.LittleEndian.Uint64([]byte(text))
	if !slices.Contains(x.needles[key], needle{text, of}) {
		x.needles[key] = append(x.needles[key], needle{text, of})
	}
}

// scan looks through one reading of the data.
func (x *leakIndex) scan(data []byte) string {
	for i := 0; i+8 <= len(data); i++ {
		for _, n := range x.needles[binary.LittleEndian.Uint64(data[i:])] {
			if bytes.HasPrefix(data[i:], []byte(n.text)) {
				return n.of
			}
		}
	}
	return ""
}

// find names the secret that data contains and its encoding; "" if there is none.
func (x *leakIndex) find(data []byte) string {
	seen := map[string]bool{}
	readings := []struct {
		name string
		data []byte
	}{{"as it is", data}}
	add := func(name string, d []byte) {
		if !seen[string(d)] {
			seen[string(d)] = true
			readings = append(readings, struct {
				name string
				data []byte
			}{name, d})
		}
	}
	seen[string(data)] = true
	once := []struct {
		name string
		f    func([]byte) []byte
	}{
		{"percent", unpercent}, {"backslash", unbackslash}, {"entities", unentity}, {"quoted-printable", unquoted},
		{"without white space", squeezed}, {"without separators", unseparated}, {"gzip", ungzipped},
	}
	for _, a := range once {
		first := a.f(data)
		add(a.name, first)
		for _, b := range once {
			add(b.name+" in "+a.name, b.f(first))
		}
	}
	for _, r := range readings {
		if of := x.scan(r.data); of != "" {
			return of + ", " + r.name
		}
	}
	return ""
}

func unpercent(p []byte) []byte {
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
	out := make([]byte, 0, len(p))
	for i := 0; i < len(p); i++ {
		if p[i] != '\\' || i+1 >= len(p) {
			out = append(out, p[i])
			continue
		}
		i++
		width := map[byte]int{'u': 4, 'x': 2}[p[i]]
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

func unentity(p []byte) []byte { return []byte(html.UnescapeString(string(p))) }

func unquoted(p []byte) []byte {
	p = bytes.ReplaceAll(bytes.ReplaceAll(p, []byte("=\r\n"), nil), []byte("=\n"), nil)
	return unpercent(bytes.ReplaceAll(p, []byte("="), []byte("%")))
}

func squeezed(p []byte) []byte {
	return bytes.Map(func(r rune) rune {
		if r == ' ' || r == '\t' || r == '\r' || r == '\n' {
			return -1
		}
		return r
	}, p)
}

// unseparated joins the bytes of a dump: 41:42, 0x41 0x42, \x41\x42, 41-42.
func unseparated(p []byte) []byte {
	p = bytes.ReplaceAll(bytes.ReplaceAll(p, []byte("0x"), nil), []byte(`\x`), nil)
	return bytes.ToLower(bytes.Map(func(r rune) rune {
		if strings.ContainsRune(" ,:;-\"'\t\r\n", r) {
			return -1
		}
		return r
	}, p))
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

func TestTheLeakIndexFindsEveryForm(t *testing.T) {
	s := on.secrets["S1"]
	percent := ""
	escaped, entities := "", ""
	for _, c := range []byte(s) {
		percent += fmt.Sprintf("%%%02x", c)
		escaped += fmt.Sprintf(`\u%04X`, c)
		entities += fmt.Sprintf("&#%d;", c)
	}
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	_, _ = io.WriteString(z, "x"+s)
	_ = z.Close()
	for name, text := range map[string]string{
		"raw": s, "a fragment": s[7 : 7+fragment], "hex": hex.EncodeToString([]byte(s)),
		"upper hex": strings.ToUpper(hex.EncodeToString([]byte(s))),
		"hex dump":  fmt.Sprintf("% x", s), "base64": base64.StdEncoding.EncodeToString([]byte(s)),
		"base64 shifted": base64.URLEncoding.EncodeToString([]byte("xx" + s + "y")),
		"base64 in lines": base64.StdEncoding.EncodeToString([]byte(s))[:20] + "\r\n" +
			base64.StdEncoding.EncodeToString([]byte(s))[20:],
		"percent": percent, "JSON": escaped, "HTML": entities,
		"double percent": strings.ReplaceAll(percent, "%", "%25"), "gzip": zipped.String(),
	} {
		if on.leaks.find([]byte("before "+text+" after")) == "" {
			t.Errorf("%s was not found", name)
		}
	}
	if got := on.leaks.find([]byte(s[:fragment-1] + " | and nothing more")); got != "" {
		t.Errorf("%d bytes were taken for a leak: %s", fragment-1, got)
	}
}
