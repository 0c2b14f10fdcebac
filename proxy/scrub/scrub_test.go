package scrub

import (
	"bytes"
	"encoding/base32"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"math/rand/v2"
	"mime/quotedprintable"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/iotest"

	"github.com/ALRubinger/aileron/e2e/must"
)

const (
	longSecret  = `sk+ant/Q9=x%41&"k\7-ZpW3rTq8vLm2NcBf6HsJd`
	shortSecret = "hunter2!X9"
)

// spellings returns every specified encoding, written by independent encoders.
func spellings(s string) map[string]string {
	var every, unicode, decimal, hexEntity, mixed strings.Builder
	for i, c := range []byte(s) {
		fmt.Fprintf(&every, "%%%02x", c)
		fmt.Fprintf(&unicode, "\\u00%02X", c)
		fmt.Fprintf(&decimal, "&#%d;", c)
		fmt.Fprintf(&hexEntity, "&#x0%x;", c)
		if i%2 == 0 {
			fmt.Fprintf(&mixed, "%02X", c)
		} else {
			fmt.Fprintf(&mixed, "%02x", c)
		}
	}
	quoted, _ := json.Marshal(s)
	inJSON := string(quoted[1 : len(quoted)-1])
	twice, _ := json.Marshal(inJSON)
	var qp bytes.Buffer
	w := quotedprintable.NewWriter(&qp)
	_, _ = io.WriteString(w, s)
	_ = w.Close()
	digits := hex.EncodeToString([]byte(s))
	pairs := func(sep, before string) string {
		var out []string
		for i := 0; i < len(digits); i += 2 {
			out = append(out, before+digits[i:i+2])
		}
		return strings.Join(out, sep)
	}
	std := base64.StdEncoding.EncodeToString([]byte(s))
	forms := map[string]string{
		"raw": s, "query": url.QueryEscape(s), "path": url.PathEscape(s), "every": every.String(),
		"double percent": url.QueryEscape(url.QueryEscape(s)), "json": inJSON,
		"json in json": string(twice[1 : len(twice)-1]),
		"slashes":      strings.ReplaceAll(inJSON, "/", `\/`), "unicode": unicode.String(), "html": html.EscapeString(s),
		"decimal entities": decimal.String(), "hex entities": hexEntity.String(), "quoted-printable": qp.String(),
		"hex": digits, "HEX": strings.ToUpper(digits), "mixed hex": mixed.String(), "hex colons": pairs(":", ""),
		"hex spaces": pairs(" ", ""),
		"hex 0x":     pairs(", ", "0x"), "hex backslash": pairs("", `\x`),
		"base64": std, "base64url": base64.URLEncoding.EncodeToString([]byte(s)),
		"raw base64":     base64.RawStdEncoding.EncodeToString([]byte(s)),
		"reflowed":       std[:len(std)/2] + "\r\n" + std[len(std)/2:],
		"reflowed json":  std[:len(std)/2] + `\n` + std[len(std)/2:],
		"percent base64": url.QueryEscape(std), "json base64": strings.ReplaceAll(std, "/", `\/`),
	}
	var decimals []string
	var braces, percentU strings.Builder
	for _, c := range []byte(s) {
		decimals = append(decimals, fmt.Sprint(c))
		fmt.Fprintf(&braces, `\u{%x}`, c)
		fmt.Fprintf(&percentU, "%%u00%02X", c)
	}
	forms["numbers"], forms["numbers without blanks"] = strings.Join(decimals, ", "), strings.Join(decimals, ",")
	forms["numbers in lines"] = strings.Join(decimals, ",\n    ")
	forms["braces"], forms["percent u"] = braces.String(), percentU.String()
	for name, format := range map[string]string{
		"unicode": `\u%04x`, "percent": "%%%02X", "entities": "&#%d;", "quoted": "=%02X"} {
		var escaped strings.Builder
		for _, c := range []byte(digits) {
			fmt.Fprintf(&escaped, format, c)
		}
		forms["hex in "+name] = escaped.String()
	}
	forms["lower"], forms["UPPER"] = strings.ToLower(s), strings.ToUpper(s)
	forms["lower base64"] = strings.ToLower(std)
	forms["base32"], forms["base32 lower"] = base32.StdEncoding.EncodeToString([]byte(s)),
		strings.ToLower(base32.StdEncoding.EncodeToString([]byte(s)))
	forms["base32hex"] = base32.HexEncoding.WithPadding(base32.NoPadding).EncodeToString([]byte(s))
	forms["base64 with tabs"] = inGroups(std, "\t", 16)
	for i, prefix := range []string{"x", "xx", "Bearer "} {
		forms[fmt.Sprintf("base64 shifted %d", i)] = base64.StdEncoding.EncodeToString([]byte(prefix + s + `","more":1`))
	}
	return forms
}

// scrubbed returns text after a Reader that receives it in pieces of the given sizes.
func scrubbed(t *testing.T, set *Set, text string, sizes func() int) string {
	t.Helper()
	src := iotest.DataErrReader(&pieces{strings.NewReader(text), sizes})
	out := must.Get(io.ReadAll(set.Reader(io.NopCloser(src))))(t)
	if len(out) != len(text) {
		t.Fatalf("%d bytes became %d", len(text), len(out))
	}
	return string(out)
}

type pieces struct {
	r    io.Reader
	size func() int
}

func (p *pieces) Read(b []byte) (int, error) { return p.r.Read(b[:min(len(b), max(1, p.size()))]) }

// runs returns the length of the longest run of form that is still in text.
func runs(text, form string) int {
	longest := 0
	for i := range form {
		for j := i + longest + 1; j <= len(form) && strings.Contains(text, form[i:j]); j++ {
			longest = j - i
		}
	}
	return longest
}

func TestEveryEncodingIsRedactedUnderAnyChunking(t *testing.T) {
	set := NewSet([]Credential{{Secret: []byte(longSecret)}, {Secret: []byte("another-secret-of-the-session-0042")}})
	random := rand.New(rand.NewPCG(1, 2))
	for name, form := range spellings(longSecret) {
		text := `{"before":"value","header":"` + form + `","after":[1,2,3]} the end.`
		for trial, size := range map[string]func() int{
			"whole": func() int { return 1 << 20 }, "bytes": func() int { return 1 },
			"random": func() int { return 1 + random.IntN(9) },
			"large":  func() int { return 20 + random.IntN(30) },
		} {
			got := scrubbed(t, set, text, size)
			// What is left of an encoding is less than one window of its symbols;
			// two pairs of a dump may be released before it is recognised.
			limit := 8
			switch {
			case strings.HasPrefix(name, "base64 shifted"):
				limit = 30 // the rest of the document around it
			case name == "numbers in lines":
				limit = 32 // three numbers and what is between
			}
			if n := runs(got, form); n > limit {
				t.Errorf("%s in %s: %d bytes of %q are left in %q", name, trial, n, form, got)
			}
			if !strings.HasPrefix(got, `{"before":"value"`) || !strings.HasSuffix(got, `"after":[1,2,3]} the end.`) {
				t.Errorf("%s in %s: the rest was changed: %q", name, trial, got)
			}
		}
	}
}

func TestAShortSecretIsFoundWholeOnly(t *testing.T) {
	set := NewSet([]Credential{{Secret: []byte(shortSecret)}})
	one := func() int { return 1 }
	if got := scrubbed(t, set, "a hunter2!X9 b", one); got != "a ********** b" {
		t.Errorf("got %q", got)
	}
	if got := scrubbed(t, set, "a hunter2!X b", one); got != "a hunter2!X b" {
		t.Errorf("got %q", got)
	}
}

// A UUID is found without its dashes too, and none of its 16 bytes is an oracle.
func TestAUUIDIsFoundInItsUsualSpellings(t *testing.T) {
	const uuid = "550e8400-e29b-41d4-a716-446655440a0f"
	set := NewSet([]Credential{{Secret: []byte(uuid)}})
	for _, form := range []string{uuid, strings.ToUpper(uuid), strings.ReplaceAll(uuid, "-", ""),
		strings.ToUpper(strings.ReplaceAll(uuid, "-", "")), uuid[:20], strings.ReplaceAll(uuid, "-", "")[7:23]} {
		if got, hits := set.Text("{" + form + "}"); hits == 0 || got != "{"+strings.Repeat("*", len(form))+"}" {
			t.Errorf("%q became %q", form, got)
		}
	}
	for _, guess := range []string{uuid[:15], strings.ToUpper(uuid[9:24]), strings.ReplaceAll(uuid, "-", "")[5:20]} {
		if got, hits := set.Text("{" + guess + "}"); hits != 0 {
			t.Errorf("%q became %q", guess, got)
		}
	}
}

// Case is folded for whole secrets and long runs only: fewer bytes, in any
// case, show nothing.
func TestShortRunsInAnotherCaseAreNoOracle(t *testing.T) {
	set := NewSet([]Credential{{Secret: []byte(longSecret)}, {Secret: []byte(shortSecret)}})
	var text strings.Builder
	for i := 0; i+Window-1 <= len(longSecret); i++ {
		run := longSecret[i : i+Window-1]
		fmt.Fprintf(&text, "<%s~><%s~>", strings.ToUpper(run), strings.ToLower(run))
	}
	text.WriteString(strings.ToUpper(shortSecret[1:]) + "<" + strings.ToLower(shortSecret[:9]) + ">")
	if got, hits := set.Text(text.String()); hits != 0 || got != text.String() {
		t.Errorf("%d hits", hits)
	}
}

func TestBoundariesHideNothing(t *testing.T) {
	set := NewSet([]Credential{{Secret: []byte(longSecret)}})
	for _, at := range []int{0, 4096, 32768, 65536} {
		for k := -len(longSecret); k <= 1; k++ {
			if at+k < 0 {
				continue
			}
			text := strings.Repeat(".", at+k) + longSecret + strings.Repeat(".", 100)
			want := strings.Repeat(".", at+k) + strings.Repeat("*", len(longSecret)) + strings.Repeat(".", 100)
			if got := scrubbed(t, set, text, func() int { return 1 << 20 }); got != want {
				t.Fatalf("at %d: left %d", at+k, runs(got, longSecret))
			}
		}
	}
}

func TestATruncatedSecretIsRedacted(t *testing.T) {
	set := NewSet([]Credential{{Secret: []byte(longSecret)}})
	runs := []string{longSecret[:len(longSecret)-1]}
	for i := 0; i+Window <= len(longSecret); i++ {
		runs = append(runs, longSecret[i:i+Window])
	}
	for _, run := range runs {
		got := scrubbed(t, set, "."+run+".", func() int { return 7 })
		if got != "."+strings.Repeat("*", len(run))+"." {
			t.Errorf("of %q: got %q", run, got)
		}
	}
}

// The shortest pieces that are hits, as the last of a text: nothing behind them is in an encoding.
func TestTheShortestPieceIsFoundAtTheEnd(t *testing.T) {
	set := NewSet([]Credential{{Secret: []byte(longSecret)}})
	b32 := base32.StdEncoding.EncodeToString([]byte(longSecret))
	b64 := base64.StdEncoding.EncodeToString([]byte(longSecret))
	for name, piece := range map[string]string{
		"plain":                 longSecret[3:][:Window],
		"hexadecimal":           hex.EncodeToString([]byte(longSecret[3:][:Window])),
		"base32":                b32[9:][:base32Window],
		"base32 from a byte on": b32[8:][:base32Window+1],
		"base64":                b64[5:][:base64Window],
		"base64 from a byte on": b64[4:][:base64Window+1],
	} {
		want := "x=" + strings.Repeat("*", len(piece))
		if got := scrubbed(t, set, "x="+piece, func() int { return 1 << 20 }); got != want {
			t.Errorf("%s: %q became %q, want %q", name, piece, got, want)
		}
	}
}

func TestGuessesOfAFewBytesAreNoOracle(t *testing.T) {
	set := NewSet([]Credential{{Secret: []byte(longSecret)}, {Secret: []byte(shortSecret)}})
	var text strings.Builder
	for i := 0; i+4 <= len(longSecret); i++ {
		text.WriteString(longSecret[i:i+4] + "," + longSecret[i:min(i+8, len(longSecret))] + "," +
			longSecret[i:min(i+15, len(longSecret))] + "!")
	}
	r := set.Reader(io.NopCloser(strings.NewReader(text.String())))
	out, _ := io.ReadAll(r)
	if string(out) != text.String() || r.Hits() != 0 {
		t.Errorf("%d hits in guesses", r.Hits())
	}
}

func TestAnEventLeavesWhenItArrives(t *testing.T) {
	set := NewSet([]Credential{{Secret: []byte(longSecret)}})
	pr, pw := io.Pipe()
	r := set.Reader(pr)
	buf := make([]byte, 1024)
	for i := range 50 {
		event := fmt.Sprintf("data: {\"delta\":\"token %d\"}\n\n", i)
		if i%2 == 0 {
			event = fmt.Sprintf("data: %d\n\n", i)
		}
		go func() { _, _ = io.WriteString(pw, event) }()
		if n, err := r.Read(buf); err != nil || string(buf[:n]) != event {
			t.Fatalf("event %d: got %q, %v", i, buf[:n], err)
		}
	}
}

// All exchanges of a session share one set, and what it keeps for the next one.
func TestExchangesShareASet(t *testing.T) {
	set := NewSet([]Credential{{Secret: []byte(longSecret)}, {Secret: []byte(shortSecret)}})
	var group sync.WaitGroup
	for n := range 8 {
		group.Go(func() {
			for i := range 20 {
				before := strings.Repeat(fmt.Sprintf(`{"exchange":"%d of %d"},`, i, n), 1+i*100)
				form := url.QueryEscape(longSecret)
				r := set.Reader(io.NopCloser(strings.NewReader(before + form + before + shortSecret)))
				out, err := io.ReadAll(r)
				want := before + strings.Repeat("*", len(form)) + before + strings.Repeat("*", len(shortSecret))
				if err != nil || string(out) != want || r.Hits() != 2 {
					t.Errorf("%d of %d: %d bytes, want %d; %d hits, %v", i, n, len(out), len(want), r.Hits(), err)
				}
				_ = r.Close()
			}
		})
	}
	group.Wait()
}

func TestRandomDataIsLeftAlone(t *testing.T) {
	set := NewSet([]Credential{{Secret: []byte(longSecret), Username: "someone"}, {Secret: []byte(shortSecret)}})
	random := rand.NewChaCha8([32]byte{1})
	data := make([]byte, 4<<20)
	_, _ = random.Read(data)
	text := base64.StdEncoding.EncodeToString(data[:1<<20]) + string(data) + hex.EncodeToString(data[:1<<20])
	r := set.Reader(io.NopCloser(strings.NewReader(text)))
	out, err := io.ReadAll(r)
	if err != nil || r.Hits() != 0 || string(out) != text {
		t.Errorf("%d hits in random data, %v", r.Hits(), err)
	}
}

func TestBasicCredentialsAreFoundAndTheNameAloneIsNot(t *testing.T) {
	set := NewSet([]Credential{{Secret: []byte(longSecret), Username: "a-rather-long-user-name"}})
	both := base64.StdEncoding.EncodeToString([]byte("a-rather-long-user-name:" + longSecret))
	got, hits := set.Text("Basic " + both)
	if hits == 0 || runs(got, both[34:]) > 2 {
		t.Errorf("got %q", got)
	}
	name := base64.StdEncoding.EncodeToString([]byte("a-rather-long-user-name:someone else's"))
	if got, hits := set.Text(name); hits != 0 {
		t.Errorf("the name alone is a hit: %q", got)
	}
}

func TestHeadersAreScrubbedByNameAndValue(t *testing.T) {
	set := NewSet([]Credential{{Secret: []byte("abcdefgh-ijklmnop-0123")}})
	h := http.Header{"X-Echo": {"one", "Bearer abcdefgh-ijklmnop-0123"}, "X-Abcdefgh-Ijklmnop-0123": {"1"},
		"Etag": {`"v1"`}}
	if n := set.Header(h); n != 2 || h["X-Echo"][1] != "Bearer **********************" || len(h) != 2 ||
		h.Get("Etag") != `"v1"` {
		t.Errorf("%d hits, %v", n, h)
	}
}

func TestASetDoesNotPrint(t *testing.T) {
	set := NewSet([]Credential{{Secret: []byte(longSecret)}})
	if s := fmt.Sprintf("%v %+v %#v %s", set, set, set, set); strings.Contains(s, longSecret) {
		t.Errorf("printed %q", s)
	}
}

// What looks like an escape in front of a secret takes its first character with it, unless the escapes of the
// secret, here of HTML in two layers, are decoded apart.
func TestAnEscapeInFrontHidesNothing(t *testing.T) {
	set := NewSet([]Credential{{Secret: []byte("nine-byte")}})
	for _, form := range []string{"nine-byte", "ni&#110;e-byte",
		"ni&amp;&#35;X6E;&amp;#1&#X30;&#X31;&#59;&amp;#45;&#98;y&#x74;&amp;&#X23;101;"} {
		for _, before := range []string{`\`, `\\`, "&", "%", "="} {
			if got, hits := set.Text("<" + before + form + "(>"); hits != 1 ||
				got != "<"+before+strings.Repeat("*", len(form))+"(>" {
				t.Errorf("%q behind %q became %q", form, before, got)
			}
		}
	}
}

// What follows an escape may be a part of it in one reading, and text in another: neither reading hides a hit.
func TestAnInterruptedEscapeHidesNothing(t *testing.T) {
	set := NewSet([]Credential{{Secret: []byte("nine-byte")}, {Secret: []byte("ab<cdefgh")}, {Secret: []byte("41abcdef")}})
	for text, want := range map[string]string{
		`(nine-byt&#101%31;)`:      `(*************%31;)`,
		`(nine-byt&#101\u0031 )`:   `(*************\u0031 )`,
		`(nine-byt&#10%31;(`:       `(****************(`, // &#101; in a URL
		`(ab&lt%3Bcdefgh)`:         `(**************)`,   // &lt; in a URL
		`(ab&ltcdefgh%20)`:         `(***********%20)`,
		`(%41ab\u0063def&gt)`:      `(%*************&gt)`, // JSON; of the URL's escape only the first byte is no symbol
		`(\u0041ab%63def&gt)`:      `(\u00**********&gt)`,
		`(%5C\nine%2Dbyte&gt)`:     `(%5C\***********&gt)`,
		`(%5C\nine%2Dbyt%2565&gt)`: `(%5C\***************&gt)`,
	} {
		if got, _ := set.Text(text); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
}

// A reference at the end of a piece may be a longer one.
func TestAReferenceThatIsCutIsNoHit(t *testing.T) {
	set := NewSet([]Credential{{Secret: []byte("nine-byte")}})
	for _, pieces := range [][2]string{{"(nine-byt&#101", "0;"}, {"(nine-byt&amp;#101", "0;"}} {
		sc := set.NewScanner()
		got := string(sc.Write([]byte(pieces[0])))
		got += string(sc.Write([]byte(pieces[1])))
		if got += string(sc.Flush()); got != pieces[0]+pieces[1] || sc.Hits() != 0 {
			t.Errorf("%q became %q", pieces, got)
		}
	}
}

// The escapes of a secret may be of several syntaxes, also where a piece ends in it.
func TestEscapesOfSeveralSyntaxesAreCutAnywhere(t *testing.T) {
	set := NewSet([]Credential{{Secret: []byte("nine-byte")}})
	for _, form := range []string{
		`ni&#110;e\u002db&#121;te`, `\u006ei&#110;e-byt&#101;`, `%6eine\u002dbyt&#101;`,
		`ni&amp;#110;e\u002dbyt%65`, `ni\\u006ee&#45;byt\u0065`,
	} {
		for i := range len(form) {
			sc := set.NewScanner()
			got := string(sc.Write([]byte("<" + form[:i])))
			got += string(sc.Write([]byte(form[i:] + ">")))
			if got += string(sc.Flush()); got != "<"+strings.Repeat("*", len(form))+">" {
				t.Errorf("%q, cut behind %d bytes, became %q", form, i, got)
			}
		}
	}
}

// The beginning of base64 in lines may be taken for the end of an escape too.
func TestASwallowedBeginningOfLines(t *testing.T) {
	set := NewSet([]Credential{{Secret: []byte("\x9d a secret of some length")}})
	const lines = `nSBhIHNlY3JldCBvZi%42\nzb21lIGxlbmd0aA` // of base64: \n takes its first character
	if got, _ := set.Text(`(\` + lines + `(&gt;`); got != `(\`+strings.Repeat("*", len(lines))+`(&gt;` {
		t.Errorf("%q became %q", lines, got)
	}
}
