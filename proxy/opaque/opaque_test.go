package opaque

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"mime/multipart"
	"mime/quotedprintable"
	"net/textproto"
	"strings"
	"testing"
	"testing/iotest"
	"time"
	"unicode/utf16"

	"github.com/ALRubinger/aileron/e2e/must"
)

const document = `{"url":"/v1/echo","headers":{"Authorization":` +
	`"Bearer q7Wz/K+p2=Xn%4&r\"s\\t-ZpW3rTq8vLm2NcBf6HsJd","Accept":"*/*"}}`

func deflatedBy(open func(io.Writer) io.WriteCloser) []byte {
	var b bytes.Buffer
	w := open(&b)
	_, _ = io.WriteString(w, document)
	_ = w.Close()
	return b.Bytes()
}

func wideText(order binary.ByteOrder) []byte {
	var out []byte
	for _, c := range utf16.Encode([]rune(document)) {
		out = append(out, 0, 0)
		order.PutUint16(out[len(out)-2:], c)
	}
	return out
}

// opaques is a document in every format that is recognised. Those that have
// no encoder here are their marks with something behind.
func opaques() map[string]struct {
	data []byte
	want Format
} {
	type found = struct {
		data []byte
		want Format
	}
	all := map[string]found{
		"utf-16le": {wideText(binary.LittleEndian), UTF16}, "utf-16be": {wideText(binary.BigEndian), UTF16},
		"utf-16 mark": {append([]byte("\xff\xfe"), "anything"...), UTF16},
	}
	var le, be []byte
	for _, c := range document {
		le, be = binary.LittleEndian.AppendUint32(le, uint32(c)), binary.BigEndian.AppendUint32(be, uint32(c))
	}
	all["utf-32le"], all["utf-32be"] = found{le, UTF32}, found{be, UTF32}
	for level := flate.HuffmanOnly; level <= flate.BestCompression; level++ {
		all[fmt.Sprint("gzip ", level)] = found{deflatedBy(func(w io.Writer) io.WriteCloser {
			z, _ := gzip.NewWriterLevel(w,
				level)
			return z
		}), "gzip"}
		all[fmt.Sprint("zlib ", level)] = found{deflatedBy(func(w io.Writer) io.WriteCloser {
			z, _ := zlib.NewWriterLevel(w,
				level)
			return z
		}), "zlib"}
		if level == flate.NoCompression || level == flate.HuffmanOnly || level == flate.BestSpeed {
			continue // they leave so short a text as it is, and it is searched
		}
		all[fmt.Sprint("deflate ", level)] = found{deflatedBy(func(w io.Writer) io.WriteCloser {
			z, _ := flate.NewWriter(w,
				level)
			return z
		}), "deflate"}
	}
	all["zlib with a dictionary"] = found{deflatedBy(func(w io.Writer) io.WriteCloser {
		z, _ := zlib.NewWriterLevelDict(w, 6, []byte("Authorization Accept"))
		return z
	}), "zlib"}
	all["zip"] = found{deflatedBy(func(w io.Writer) io.WriteCloser {
		z := zip.NewWriter(w)
		f, _ := z.Create("a.txt")
		return struct {
			io.Writer
			io.Closer
		}{f, z}
	}), "zip"}
	for i, m := range magics {
		all[fmt.Sprintf("%s %d", m.format, i)] = found{append([]byte(m.bytes),
			"\x00\x01\x02\xff and something behind the mark"...), m.format}
	}
	return all
}

// searchable is what must pass as it is.
var searchable = map[string]string{
	"json": `{"ok":true}`, "an array": `[1,2,3]`, "html": "<!doctype html><p>x", "empty": "", "a word": "H",
	"x": "x^2 + 1 = y", "only x^": "x^",
	"base64": base64.StdEncoding.EncodeToString([]byte(document)), "a string": `"Hello"`, "hex": "1f8b0800",
	"event": "data: {}\n\n", "heartbeat": "\n", "tar": "a.txt" + strings.Repeat("\x00", 95) + "0000644\x00",
	"png": "\x89PNG\r\n\x1a\n\x00\x00\x00\x0dIHDR\x00\x00\x00\x10",
	"pdf": "%PDF-1.7\n%\xe2\xe3\xcf\xd3\n1 0 obj\n<</Length 4>>", "jpeg": "\xff\xd8\xff\xe0\x00\x10JFIF\x00\x01",
	"woff2": "wOF2\x00\x01\x00\x00",
	"git":   "001e# service=git-upload-pack\n0000", "pack": "PACK\x00\x00\x00\x02\x00\x00\x00\x03\x9f\x0bx\x9c\x9d",
	"P": "PK is a brand", "BZh": "BZh9 is how bzip2 begins",
	"latin": "caf\xe9 au lait, s'il vous pla\xeet", "utf-8": "Zürich — 東京 — 서울: a line of many scripts",
	"mark":   "\xef\xbb\xbf{}",
	"digits": strings.Repeat("0123456789", 60), "letters": strings.Repeat("abcdefghijklmnopqrstuvwxyz", 30),
	"one letter": strings.Repeat("x", 600), "zeros": strings.Repeat("0", 600),
	"protobuf": "\x0a\x05hello\x12\x05world\x18\x96\x01", "numbers": "\x01\x00\x00\x00\x02\x00\x00\x00\x03\x00\x00\x00",
	"Rar": "Rar things are rare",
}

func TestEveryFormatIsRecognised(t *testing.T) {
	for name, o := range opaques() {
		if got, more := Sniff(o.data, true); got != o.want || more {
			t.Errorf("%s: got %q (more %v), want %q", name, got, more, o.want)
		}
		if o.want.Charset() || o.want == "deflate" {
			continue
		}
		for _, text := range []string{base64.StdEncoding.EncodeToString(o.data), base64.RawURLEncoding.EncodeToString(o.data),
			fmt.Sprintf("%q", base64.StdEncoding.EncodeToString(o.data))} {
			if got, _ := Sniff([]byte(text), true); got != o.want {
				t.Errorf("base64 of %s (%.40s): got %q, want %q", name, text, got, o.want)
			}
		}
	}
}

func TestWhatCanBeSearchedPasses(t *testing.T) {
	for name, text := range searchable {
		for n := 1; n <= len(text); n++ {
			if got, _ := Sniff([]byte(text[:n]), n == len(text)); got != "" {
				t.Errorf("%s: %q was taken for %q", name, text[:n], got)
			}
		}
	}
}

// Text without white space may be base64 of anything, and is hardly ever taken
// for base64 of something packed.
func TestPlainWordsPass(t *testing.T) {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+/-_"
	r := rand.New(rand.NewPCG(2, 5))
	taken := map[Format]int{}
	for range 20000 {
		period := 1 + r.IntN(40)
		word := make([]byte, 600)
		for i := range word {
			if word[i] = letters[r.IntN(62+4*r.IntN(2))]; i >= period {
				word[i] = word[i-period]
			}
		}
		if got, _ := Sniff(word, true); got != "" {
			taken[got]++
		}
	}
	total := 0
	for _, n := range taken {
		total += n
	}
	if total > 10 {
		t.Errorf("of 20000 were taken for packed: %v", taken)
	}
}

// Random data is hardly ever taken for packed: no format's mark is so short.
func TestRandomDataPasses(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 5))
	taken := 0
	for range 25000 {
		data := make([]byte, 200)
		for i := range data {
			data[i] = byte(r.Uint32())
		}
		if got, _ := Sniff(data, true); got != "" {
			taken++
		}
	}
	if taken > 15 { // a UTF-16 mark in 32768, "pack" in 32768, a zlib header that goes on well
		t.Errorf("%d of 25000 were taken for packed", taken)
	}
}

var errRefused = errors.New("refused")

func refuse(got *[]Format) Judge {
	return func(f Format) error { *got = append(*got, f); return errRefused }
}

// readings are the ways in which a body may come.
var readings = map[string]func(io.Reader) io.Reader{
	"whole": func(r io.Reader) io.Reader { return r }, "bytes": iotest.OneByteReader, "halves": iotest.HalfReader,
	"with its end": iotest.DataErrReader,
}

func TestNothingOfAPackedBodyLeaves(t *testing.T) {
	for how, reader := range readings {
		for name, o := range opaques() {
			if how != "whole" && o.want == "deflate" {
				continue // it takes 64 bytes at once
			}
			for _, length := range []int64{-1, int64(len(o.data))} {
				var got []Format
				b := NewBody(io.NopCloser(reader(bytes.NewReader(o.data))), length, refuse(&got))
				if err := b.Await(context.Background(), time.Minute); !errors.Is(err, errRefused) {
					t.Errorf("%s, %s: Await: %v", name, how, err)
				}
				out, err := io.ReadAll(b)
				if len(out) > 0 || !errors.Is(err, errRefused) || len(got) != 1 || got[0] != o.want {
					t.Errorf("%s, %s: %d bytes left, %v, found %q", name, how, len(out), err, got)
				}
			}
		}
	}
}

func TestWhatPassesIsUnchanged(t *testing.T) {
	for how, reader := range readings {
		for name, text := range searchable {
			text := text + strings.Repeat("and more of it. ", 600)
			var got []Format
			b := NewBody(io.NopCloser(reader(strings.NewReader(text))), -1, refuse(&got))
			if err := b.Await(context.Background(), time.Minute); err != nil {
				t.Fatalf("%s, %s: %v", name, how, err)
			}
			if out, err := io.ReadAll(b); string(out) != text || err != nil {
				t.Errorf("%s, %s: %d of %d bytes, %v", name, how, len(out), len(text), err)
			}
		}
	}
}

// A body that does not begin lets the head go, and is judged when it does.
func TestASilentBodyDelaysNothing(t *testing.T) {
	src, in := io.Pipe()
	var got []Format
	b := NewBody(src, -1, refuse(&got))
	must.Do(t, b.Await(context.Background(), 0))
	go func() { _, _ = in.Write([]byte("\x1f\x8b\x08 and so on")) }()
	if n, err := b.Read(make([]byte, 100)); n != 0 || !errors.Is(err, errRefused) {
		t.Errorf("read %d bytes, %v", n, err)
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
}

func TestClosingASilentBodyWaitsForItsReader(t *testing.T) {
	src, in := io.Pipe()
	b := NewBody(src, -1, func(Format) error { return nil })
	_ = b.Await(context.Background(), 0)
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	if _, err := in.Write([]byte("x")); err == nil {
		t.Error("something still reads")
	}
}

// envelopes writes messages with gRPC's five bytes in front.
func envelopes(flags []byte, message string) []byte {
	var out []byte
	for _, flag := range flags {
		out = append(out, flag)
		out = append(binary.BigEndian.AppendUint32(out, uint32(len(message))), message...)
	}
	return out
}

func TestACompressedMessageEndsTheBody(t *testing.T) {
	for how, reader := range readings {
		for name, c := range map[string]struct {
			flags []byte
			left  int // whole messages that pass
		}{"none": {[]byte{0, 0, 0}, 3}, "first": {[]byte{1, 0}, 0}, "last": {[]byte{0, 0, 1}, 2},
			"end of stream": {[]byte{0, 2, 0x80}, 3}, "compressed trailers": {[]byte{0, 0x81}, 1}} {
			for _, message := range []string{"", "m", strings.Repeat("message ", 3000)} {
				data := envelopes(c.flags, message)
				var got []Format
				out, err := io.ReadAll(Messages(io.NopCloser(reader(bytes.NewReader(data))), refuse(&got)))
				want := data[:c.left*(5+len(message))]
				if !bytes.Equal(out, want) || (c.left < len(c.flags)) != errors.Is(err, errRefused) {
					t.Errorf("%s, %s, messages of %d: %d bytes left, want %d; %v", name, how, len(message), len(out), len(want), err)
				}
			}
		}
	}
}

// multipartOf writes parts before, data, and after.
func multipartOf(header textproto.MIMEHeader, data []byte) []byte {
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	part := func(h textproto.MIMEHeader, data []byte) {
		p, _ := w.CreatePart(h)
		_, _ = p.Write(data)
	}
	part(textproto.MIMEHeader{"Content-Type": {"text/plain"}}, []byte("the first part\n-- \na signature\n\nand a line\n"))
	part(header, data)
	part(textproto.MIMEHeader{"Content-Type": {"application/json"}}, []byte(document))
	_ = w.Close()
	return b.Bytes()
}

func TestAPackedPartEndsTheBody(t *testing.T) {
	for how, reader := range readings {
		for name, o := range opaques() {
			if how != "whole" && o.want == "deflate" {
				continue
			}
			var qp bytes.Buffer
			w := quotedprintable.NewWriter(&qp)
			w.Binary = true
			_, _ = w.Write(o.data)
			_ = w.Close()
			encoded := map[string][]byte{"": o.data, "base64": []byte(base64.StdEncoding.EncodeToString(o.data)),
				"quoted-printable": qp.Bytes()}
			if o.want.Charset() || o.want == "deflate" || o.want == "zlib" || o.want == "deb" {
				encoded = map[string][]byte{"": o.data} // what begins with letters has nothing to decode
			}
			for coding, data := range encoded {
				if coding == "quoted-printable" && data[0] != '=' {
					continue
				}
				h := textproto.MIMEHeader{"Content-Type": {"application/octet-stream"}}
				if coding != "" {
					h.Set("Content-Transfer-Encoding", coding)
				}
				body := multipartOf(h, data)
				var got []Format
				p := Parts(io.NopCloser(reader(bytes.NewReader(body))), func(textproto.MIMEHeader) error { return nil },
					refuse(&got))
				out, err := io.ReadAll(p)
				if at := bytes.Index(body, data); !bytes.Equal(out, body[:at]) || !errors.Is(err, errRefused) || got[0] != o.want {
					t.Errorf("%s in %q, %s: %d bytes left, want %d; %v, %q", name, coding, how, len(out), at, err, got)
				}
			}
		}
	}
}

func TestPartsPassUnchanged(t *testing.T) {
	headers := 0
	for how, reader := range readings {
		for name, text := range searchable {
			body := multipartOf(textproto.MIMEHeader{"X-Name": {name}, "X-Folded": {"a\r\n b"}}, []byte(text))
			p := Parts(io.NopCloser(reader(bytes.NewReader(body))), func(h textproto.MIMEHeader) error {
				if h.Get("X-Name") == name {
					headers++
				}
				return nil
			}, func(f Format) error { return fmt.Errorf("took it for %s", f) })
			if out, err := io.ReadAll(p); !bytes.Equal(out, body) || err != nil {
				t.Errorf("%s, %s: %d of %d bytes, %v", name, how, len(out), len(body), err)
			}
		}
	}
	if want := len(readings) * len(searchable); headers != want {
		t.Errorf("%d headers were read, want %d", headers, want)
	}
}

func TestAPartIsRefusedForItsHeader(t *testing.T) {
	body := "--b\r\nContent-Encoding : gzip\r\nnonsense\r\n\r\ndata\r\n--b--"
	var seen textproto.MIMEHeader
	p := Parts(io.NopCloser(strings.NewReader(body)), func(h textproto.MIMEHeader) error { seen = h; return errRefused },
		nil)
	out, err := io.ReadAll(p)
	if want := body[:strings.Index(body, "data")]; string(out) != want || !errors.Is(err, errRefused) {
		t.Errorf("got %q, %v", out, err)
	}
	if text, _ := json.Marshal(seen); string(text) != `{"Content-Encoding ":["gzip"]}` {
		t.Errorf("read %s", text)
	}
}

// A refusal that comes with the first piece is known before the head leaves.
func TestAnEarlyRefusalIsAwaited(t *testing.T) {
	for name, src := range map[string]io.ReadCloser{
		"messages": Messages(io.NopCloser(bytes.NewReader(envelopes([]byte{0, 1}, "m"))),
			func(Format) error { return errRefused }),
		"parts": Parts(io.NopCloser(bytes.NewReader(multipartOf(nil, []byte("\x1f\x8b\x08")))),
			func(textproto.MIMEHeader) error { return nil },
			func(Format) error { return errRefused }),
	} {
		if err := NewBody(src, -1, nil).Await(context.Background(), time.Minute); !errors.Is(err, errRefused) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
