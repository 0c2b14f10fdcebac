package opaque

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/e2e/corpus"
	"github.com/ALRubinger/aileron/e2e/must"
)

// unsigned is the document in formats that have no signature.
func unsigned(t *testing.T) map[string][]byte {
	decoded := func(s string) []byte { return must.Get(base64.StdEncoding.DecodeString(s))(t) }
	return map[string][]byte{
		"brotli 5": decoded("G3AAAMTnmVeqe3/EEemcjDQSNuDAIbHAMMSB7qvzVlkg8k10oca6mrCQQB8/P0C3wCQKt+HxM4Iupr+X//MJr3XI" +
			"1aXoGoOjTdcZH8E1lM/uoeZvvXa8sozNZ/pvzoLFFxImn8/PDdGFoAqoKg=="),
		"brotli 11": decoded("G3AA4MWIuaW6+4kZkPBk4rABB8wBJzoNxAueLNNt+eJ+2SGA+tDV+XR1hAS7" +
			"XBF8MRBy/QF5IUBuPr7ML8TZbX7Ukngy4t" +
			"aBtpgLrr2b3Dk1zUvt7D3Ke6M6zS2c/LU4g4RpE0UJqoD/Hw=="),
		"numbers": {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10},
		"xor":     bytes.Map(func(r rune) rune { return r ^ 0x40 }, []byte(document)),
	}
}

// expecting reads data as text, and returns what left and what it was found to be.
func expecting(data []byte, reader func(io.Reader) io.Reader) (out []byte, found []Format) {
	b := NewBody(io.NopCloser(reader(bytes.NewReader(data))), -1, refuse(&found))
	b.ExpectText()
	_ = b.Await(context.Background(), time.Minute)
	out, err := io.ReadAll(b)
	if len(found) > 0 != errors.Is(err, errRefused) {
		found = append(found, Format(err.Error()))
	}
	return out, found
}

func TestWhatSaysThatItIsTextIsText(t *testing.T) {
	for how, reader := range readings {
		if how == "bytes" {
			continue // the first of them may be text
		}
		for name, data := range unsigned(t) {
			if out, found := expecting(data, reader); len(out) > 0 || len(found) != 1 || found[0] != Binary {
				t.Errorf("%s, %s: %d bytes left, found %q", name, how, len(out), found)
			}
			if _, more := Sniff(data, true); more {
				t.Errorf("%s has a signature", name)
			}
		}
	}
}

// Logs have control characters, old pages other character sets, and what APIs send is text.
func TestTextIsText(t *testing.T) {
	texts := map[string]string{
		"a log in colours": strings.Repeat("\x1b[32m\x1b[1mok\x1b[0m  test \x07\x08\x08\r\n", 40),
		"a line of a log":  "\x01\x1b[0K$ make\r\n" + strings.Repeat("section_start: compile, link, test ", 4),
		"latin-1":          "Wir pr\xfcfen die \xc4nderung: na\xefve M\xf6wen \xfcber Stra\xdfen",
		"shift-jis":        "\x93\xfa\x96\x7b\x8c\xea\x82\xcc\x83\x65\x83\x4c\x83\x58\x83\x67",
		"gbk":              "\xd6\xd0\xce\xc4\xb1\xe0\xc2\xeb",
		"names with NULs":  "a/main.go\x00a/go.mod\x00a/README.md\x00" + strings.Repeat("a/b/c.go\x00", 20),
		"a hole":           "before\n" + strings.Repeat("\x00", 4096) + "after\n", "half a character": "caf\xc3",
		"a control character": `{"a":"` + "\x1f" + `"}`,
	}
	for _, kind := range corpus.Kinds() {
		if kind.Name != "random" {
			texts[kind.Name] = string(kind.Make(1, 20<<10))
		}
	}
	for name, text := range texts {
		if name == "names with NULs" || name == "a hole" {
			continue // they begin as text: below
		}
		for how, reader := range readings {
			if out, found := expecting([]byte(text), reader); string(out) != text || len(found) > 0 {
				t.Errorf("%s, %s: %d of %d bytes left, found %q", name, how, len(out), len(text), found)
			}
		}
	}
	for _, name := range []string{"names with NULs", "a hole"} {
		text := strings.Repeat("a line of a page\n", 400) + texts[name]
		if out, found := expecting([]byte(text), readings["whole"]); string(out) != text || len(found) > 0 {
			t.Errorf("%s: %d of %d bytes left, found %q", name, len(out), len(text), found)
		}
	}
}

// A body may change its character encoding after a while.
func TestWideCharactersAreFoundBehindText(t *testing.T) {
	utf32 := binary.LittleEndian.AppendUint32(nil, ' ')
	for _, c := range document {
		utf32 = binary.BigEndian.AppendUint32(utf32, uint32(c))
	}
	for _, before := range []int{1, 10, headSize - 10, 2 * headSize} {
		text := strings.Repeat("x", before) + "\n"
		for wide, want := range map[string]Format{string(wideText(binary.LittleEndian)): UTF16,
			string(wideText(binary.BigEndian)): UTF16, string(utf32): UTF32} {
			for how, reader := range readings {
				out, found := expecting([]byte(text+wide), reader)
				if len(found) != 1 || found[0] != want || len(out) > len(text)+4*(mostBeats+2) ||
					!strings.HasPrefix(text+wide, string(out)) {
					t.Errorf("%s behind %d bytes, %s: %d bytes left, found %q", want, before, how, len(out), found)
				}
			}
		}
	}
}
