package modify

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"encoding/ascii85"
	"encoding/base32"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"html"
	"io"
	"math/big"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/proxy/scrub"
)

// formSecret is a key as they are: letters and digits behind a public beginning.
const formSecret = "ghp_7bQ2mXr9LkT4vNc8WzYf3HsJd6PaEu1RgVo5"

// form is a response in which the secret is written in one form.
type form struct {
	media, coding string
	body          string
}

// each writes every byte of s.
func each(format, s string) string {
	var b strings.Builder
	for _, c := range []byte(s) {
		fmt.Fprintf(&b, format, c)
	}
	return b.String()
}

func base64Of(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }

func packed[W io.WriteCloser](open func(io.Writer) W, s string) string {
	var b bytes.Buffer
	w := open(&b)
	_, _ = io.WriteString(w, s)
	_ = w.Close()
	return b.String()
}

func gzipped(s string) string { return packed(gzip.NewWriter, s) }

func deflated(s string) string {
	return packed(func(w io.Writer) io.WriteCloser { z, _ := flate.NewWriter(w, 6); return z }, s)
}

// forms has the rows of the table in docs/scrubbing.md.
func forms(t *testing.T) map[string]form {
	const s = formSecret
	inJSON := func(value string) form { return form{media: "application/json", body: `{"value":"` + value + `"}`} }
	inBase64 := base64Of(s)
	document := `{"data":{"viewer":{"login":"ada","token":"` + s + `","id":"MDQ6VXNlcjE="}},"ok":true,"list":[1,2,3]}`
	// Written by Brotli's own library, in quality 11.
	brotli := string(must.Get(base64.StdEncoding.DecodeString("G4IAQIzTFfOihHVPgXWlvnxko19A6rD0OeUCxlZg" +
		"gSfSQe3gIYs2WTyhyBex8M" +
		"U3i2yYCxjPxghTvwEsV6ehPMm5feuiRttKeCRTpflpL3jvGsykbGzf2WLZOIoI6xkgtnKp0Up2041t4n84bgEOqkRNlyU4gu8P"))(t))
	// A block of LZ4, without a frame: all literals, but for the repetitions of one character.
	lz4 := "\x1fa\x01\x00\x40" + "\xf0\x19" + s
	ascii := make([]byte, ascii85.MaxEncodedLen(len(s)))
	ascii = ascii[:ascii85.Encode(ascii, []byte(s))]
	reversed := []byte(s)
	slices.Reverse(reversed)
	wide := each("%c\x00", s)
	part := form{media: "multipart/mixed; boundary=b",
		body: "--b\r\n\r\n" + gzipped(document) + "\r\n--b--\r\n"}
	const text, binary, jsonType = "text/plain", "application/octet-stream", "application/json"
	return map[string]form{
		"as it is":                        inJSON(s),
		"percent, every byte":             inJSON(each("%%%02X", s)),
		"`\\u00xx`, every byte":           inJSON(each(`\u%04x`, s)),
		"character references":            {media: "text/html", body: "<p>" + each("&#%d;", s)},
		"quoted-printable":                {media: text, body: "token: " + each("=%02X", s)},
		"two layers of escapes":           inJSON(url.QueryEscape(each("&#x%x;", s))),
		"in upper case":                   inJSON(strings.ToUpper(s)),
		"an array of bytes":               {media: jsonType, body: "[" + strings.TrimSuffix(each("%d, ", s), ", ") + "]"},
		"hexadecimal":                     inJSON(hex.EncodeToString([]byte(s))),
		"hexadecimal, in pairs":           {media: text, body: each("%02x ", s)},
		"hexadecimal behind escapes":      inJSON(each(`\u%04x`, hex.EncodeToString([]byte(s)))),
		"base64":                          inJSON(inBase64),
		"base64 of a document":            inJSON(base64Of(document)),
		"base64 in lines":                 {media: text, body: inBase64[:24] + "\r\n" + inBase64[24:]},
		"base64 behind escapes":           inJSON(each(`\u%04x`, inBase64)),
		"base32":                          inJSON(base32.StdEncoding.EncodeToString([]byte(s))),
		"16 bytes of it":                  inJSON(s[4:20]),
		"gzip, announced":                 {media: jsonType, coding: "gzip", body: gzipped(document)},
		"gzip, not announced":             {media: jsonType, body: gzipped(document)},
		"gzip in base64":                  {media: text, body: base64Of(gzipped(document))},
		"raw DEFLATE":                     {media: binary, body: deflated(document)},
		"Brotli that says it is text":     {media: jsonType, body: brotli},
		"UTF-16, announced":               {media: "text/plain; charset=utf-16le", body: wide},
		"UTF-16, not announced":           {media: binary, body: wide},
		"UTF-16 behind text":              {media: text, body: "the key is:\n" + wide},
		"a compressed part":               part,
		"reversed":                        inJSON(string(reversed)),
		"each character changed":          inJSON(strings.Map(func(r rune) rune { return r + 1 }, s)),
		"characters one by one":           {media: jsonType, body: "[" + strings.TrimSuffix(each(`"%c",`, s), ",") + "]"},
		"octal escapes":                   {media: text, body: each(`\%03o`, s)},
		"escapes of CSS":                  {media: "text/css", body: each(`\%x `, s)},
		"binary digits":                   {media: text, body: each("%08b", s)},
		"three layers of escapes":         inJSON(each(`\u%04x`, each("%%%02X", each("&#x%x;", s)))),
		"base64 of base64":                inJSON(base64Of("Basic " + base64Of("ada:"+s))),
		"hexadecimal of base64":           inJSON(hex.EncodeToString([]byte(inBase64))),
		"base64 of hexadecimal":           inJSON(base64Of(hex.EncodeToString([]byte(s)))),
		"base64 of escaped text":          inJSON(base64Of(html.EscapeString(each("&#%d;", s)))),
		"a dump whose digits are escaped": inJSON(each(`\u%04x`, each("%02x ", s))),
		"base85":                          inJSON(string(ascii)),
		"base85, ZeroMQ's alphabet":       {media: text, body: z85(s)},
		"base58":                          inJSON(digits(s, "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz")),
		"base36":                          inJSON(digits(s, "0123456789abcdefghijklmnopqrstuvwxyz")),
		"base32, Crockford's alphabet":    inJSON(base32.NewEncoding(crockford).EncodeToString([]byte(s))),
		"base32 behind escapes":           inJSON(each(`\u%04x`, base32.StdEncoding.EncodeToString([]byte(s)))),
		"base32 of base64":                inJSON(base32.StdEncoding.EncodeToString([]byte(inBase64))),
		"base64 in quoted-printable":      {media: "message/rfc822", body: "token: " + each("=%02X", inBase64)},
		"an array of bytes of base64":     {media: jsonType, body: "[" + each("%d,", inBase64) + "0]"},
		"an array of bytes, in octal":     {media: text, body: each("%o, ", s)},
		"`\\xNN`, every byte":             {media: text, body: "b'" + each(`\x%02x`, s) + "'"},
		"uuencode":                        {media: text, body: uuencoded(s)},
		"yEnc":                            {media: binary, body: "=ybegin line=128 size=40 name=a\r\n" + shifted(s, 42)},
		"rot13":                           inJSON(rot13(s)),
		"UTF-7":                           {media: text, body: "+" + base64Of(each("\x00%c", s)) + "-"},
		"characters of full width":        inJSON(strings.Map(func(r rune) rune { return r + 0xfee0 }, s)),
		"zlib, not announced":             {media: text, body: packed(zlib.NewWriter, document)},
		"UTF-32 behind text":              {media: text, body: "the key is:\n" + each("%c\x00\x00\x00", s)},
		"UTF-16 behind text and a mark":   {media: text, body: "the key is:\n\xfe\xff" + each("\x00%c", s)},
		"gzip in base64, as a value":      inJSON(base64Of(gzipped(document))),
		"Brotli that says it is binary":   {media: binary, body: brotli},
		"UTF-16 behind something binary":  {media: binary, body: "\x89PNG\r\n\x1a\n" + wide},
		"15 bytes of it":                  inJSON(s[4:19]),
		"base62":                          inJSON(digits(s, lettersAndDigits)),
		"base45":                          {media: text, body: base45(s)},
		"xxencode":                        {media: text, body: "begin 644 a\nc" + xx.EncodeToString([]byte(s)) + "\n"},
		"base64, bcrypt's alphabet":       inJSON(bcrypt.EncodeToString([]byte(s))),
		"an encoded word of mail":         {media: text, body: "Subject: =?utf-8?Q?" + each("=%02X", s) + "?=\r\n"},
		"EBCDIC behind text":              {media: text, body: "the key is:\n" + ebcdic(s)},
		"UTF-16 behind a lot of text":     {media: jsonType, body: strings.Repeat(`{"line":1}`+"\n", 20000) + wide},
		"LZ4 that says it is text":        {media: jsonType, body: lz4},
	}
}

const crockford = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"

const lettersAndDigits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// Alphabets of 64 printable characters that are not those of RFC 4648.
var (
	xx     = base64.NewEncoding("+-" + lettersAndDigits)
	bcrypt = base64.NewEncoding("./" + lettersAndDigits[10:] + "0123456789").WithPadding(base64.NoPadding)
)

// base45 writes s, whose length is even, in RFC 9285's base45.
func base45(s string) string {
	const alphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ $%*+-./:"
	var out []byte
	for two := range slices.Chunk([]byte(s), 2) {
		n := int(two[0])<<8 | int(two[1])
		out = append(out, alphabet[n%45], alphabet[n/45%45], alphabet[n/45/45])
	}
	return string(out)
}

// ebcdic writes letters, digits and the low line in the code page 037.
func ebcdic(s string) string {
	out := []byte(s)
	for i, c := range out {
		switch {
		case c >= '0' && c <= '9':
			out[i] = 0xf0 + c - '0'
		case c == '_':
			out[i] = 0x6d
		default:
			n := c&^0x20 - 'A'
			row := n / 9 // A to I, J to R, S to Z
			out[i] = 0xc1 + row*0x10 + n%9
			if row == 2 {
				out[i]++
			}
			if c >= 'a' {
				out[i] -= 0x40
			}
		}
	}
	return string(out)
}

// digits writes s as one number, with the digits of an alphabet.
func digits(s, alphabet string) string {
	n, base, digit := new(big.Int).SetBytes([]byte(s)), big.NewInt(int64(len(alphabet))), new(big.Int)
	var out []byte
	for n.Sign() > 0 {
		n.DivMod(n, base, digit)
		out = append(out, alphabet[digit.Int64()])
	}
	slices.Reverse(out)
	return string(out)
}

// z85 writes s, whose length is a multiple of four, in ZeroMQ's base85.
func z85(s string) string {
	const alphabet = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
	var out []byte
	for four := range slices.Chunk([]byte(s), 4) {
		n, five := binary.BigEndian.Uint32(four), [5]byte{}
		for i := range five {
			five[4-i], n = alphabet[n%85], n/85
		}
		out = append(out, five[:]...)
	}
	return string(out)
}

func uuencoded(s string) string {
	const alphabet = "`!\"#$%&'()*+,-./0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_"
	return "begin 644 a\n" + alphabet[len(s):len(s)+1] + base64.NewEncoding(alphabet).EncodeToString([]byte(s)) +
		"\n`\nend\n"
}

func shifted(s string, by byte) string {
	out := []byte(s)
	for i := range out {
		out[i] += by
	}
	return string(out)
}

func rot13(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z':
			return 'a' + (r-'a'+13)%26
		case r >= 'A' && r <= 'Z':
			return 'A' + (r-'A'+13)%26
		}
		return r
	}, s)
}

// treated returns what becomes of a response with a credential.
func treated(t *testing.T, f form) string {
	t.Helper()
	res := &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {f.media}}, ContentLength: -1,
		Body: io.NopCloser(strings.NewReader(f.body))}
	if f.coding != "" {
		res.Header.Set("Content-Encoding", f.coding)
	}
	packed := &RejectPacked{Method: http.MethodGet, Wait: time.Minute, StreamWait: time.Minute}
	err := RejectOpaque{}.ModifyResponse(res)
	if err == nil {
		err = packed.ModifyResponse(res)
	}
	if err == nil {
		err = packed.Await(t.Context(), true)
	}
	var out []byte
	var body *scrub.Reader
	if err == nil {
		body = scrub.NewSet([]scrub.Credential{{Secret: []byte(formSecret)}}).Reader(res.Body)
		out, err = io.ReadAll(body)
	}
	var refused *Error
	switch {
	case errors.As(err, &refused):
		return map[Kind]string{ContentCoding: "refused: `content_encoding`", Packed: "refused: `packed_body`",
			Charset: "refused: `charset`"}[refused.Kind]
	case err != nil:
		return err.Error()
	case body.Hits() > 0 && len(out) == len(f.body):
		return "found"
	case string(out) == f.body:
		return "passes"
	}
	return strconv.Quote(string(out))
}

// TestTheTableOfFormsIsTrue holds docs/scrubbing.md to what becomes of a response in each form.
func TestTheTableOfFormsIsTrue(t *testing.T) {
	page := string(must.Get(os.ReadFile("../../docs/scrubbing.md"))(t))
	_, page, _ = strings.Cut(page, "\n## Form by form\n")
	page, _, _ = strings.Cut(page, "\n## ")
	all := forms(t)
	for line := range strings.Lines(page) {
		cells := strings.Split(strings.Trim(line, "| \n"), "|")
		if len(cells) != 2 || strings.HasPrefix(cells[0], "--") || cells[0] == "a secret, or a response with it " {
			continue
		}
		name, states := strings.TrimSpace(cells[0]), strings.TrimSpace(cells[1])
		f, known := all[name]
		if !known {
			t.Errorf("the table has %q, which nothing tries", name)
			continue
		}
		delete(all, name)
		if got := treated(t, f); got != states {
			t.Errorf("%s: the table says %q; it is %s", name, states, got)
		}
	}
	for name, f := range all {
		t.Errorf("the table has no row | %s | %s |", name, treated(t, f))
	}
}
