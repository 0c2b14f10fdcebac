package attacks

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"compress/lzw"
	"compress/zlib"
	"encoding/base32"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"strings"
	"unicode/utf16"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/e2e/harness"
)

// lekPacked: answers in which a search finds nothing although the secret is
// there, and whose head does not show it.
func lekPacked() []attack {
	return []attack{
		{id: "LEK-15", does: "a packed body without Content-Encoding is refused, and nothing of it arrives",
			run: func(c *testCase) {
				for name, pack := range packers {
					for _, kind := range []string{"", "application/json", "application/octet-stream", "text/plain; charset=utf-8"} {
						c.each(name+" as "+kind, func(c *testCase) { c.refusedBody(kind, packedBody, pack) })
					}
					if name == "deflate" {
						continue // in base64 it has no mark: docs/scrubbing.md
					}
					c.each(name+" in base64", func(c *testCase) {
						c.refusedBody("text/plain", packedBody, func(s string) []byte {
							return []byte(base64.StdEncoding.EncodeToString(pack(s)))
						})
					})
					c.each(name+" in a part", func(c *testCase) {
						c.refusedBody("multipart/mixed; boundary=b", packedBody, func(s string) []byte {
							return fmt.Appendf(nil, "--b\r\nContent-Type: text/plain\r\n\r\nfirst\r\n--b\r\nContent-Type: "+
								"application/json\r\n\r\n%s\r\n--b--\r\n", pack(s))
						})
					})
					c.each(name+" in a part, base64", func(c *testCase) {
						c.refusedBody("multipart/form-data; boundary=b", packedBody, func(s string) []byte {
							return fmt.Appendf(nil, "--b\r\nContent-Transfer-Encoding: base64\r\n\r\n%s\r\n--b--\r\n",
								inLines(base64.StdEncoding.EncodeToString(pack(s)), 76))
						})
					})
				}
				c.each("byte by byte", func(c *testCase) {
					c.origin("api.good.test").plays(func(v *visit) {
						body := gzipped("here: " + v.credential())
						v.send("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", len(body))
						for _, b := range body {
							_, _ = v.conn.Write([]byte{b})
						}
					})
					c.refusedWhole(packedBody)
				})
				c.each("a later part", func(c *testCase) { c.cutPart() })
			}},
		{id: "LEK-15c", does: "a compressed gRPC message is not delivered, whatever grpc-encoding says",
			run: func(c *testCase) {
				message := func(flag byte, data []byte) []byte {
					return append(binary.BigEndian.AppendUint32([]byte{flag}, uint32(len(data))), data...)
				}
				for _, kind := range []string{"application/grpc", "application/grpc+proto", "application/grpc-web+proto",
					"application/connect+proto"} {
					for _, field := range []string{"X-Other", "Grpc-Encoding"} {
						c.each(kind+" "+field, func(c *testCase) {
							c.origin("api.good.test").plays(func(v *visit) {
								v.reply(200, string(message(1, gzipped("here: "+v.credential()))), "Content-Type", kind, field, "identity")
							})
							c.refusedWhole(packedBody)
						})
					}
				}
			}},
		{id: "LEK-31b", does: "wide characters without a charset, or with one that is hidden, are refused",
			run: func(c *testCase) {
				for name, wide := range map[string]func(string) []byte{
					"utf-16le":    func(s string) []byte { return wideText(binary.LittleEndian, 2, s) },
					"utf-16be":    func(s string) []byte { return wideText(binary.BigEndian, 2, s) },
					"utf-32le":    func(s string) []byte { return wideText(binary.LittleEndian, 4, s) },
					"utf-32be":    func(s string) []byte { return wideText(binary.BigEndian, 4, s) },
					"with a mark": func(s string) []byte { return append([]byte("\xff\xfe"), wideText(binary.LittleEndian, 2, s)...) },
				} {
					for _, kind := range []string{"", "text/plain", "text/html; charset=utf-8", "application/json",
						"text/event-stream"} {
						c.each(name+" as "+kind, func(c *testCase) { c.refusedBody(kind, unsafeCharset, wide) })
					}
				}
			}},
		{id: "LEK-45", does: "an echo in another case of its letters is redacted like any other", run: func(c *testCase) {
			s := on.secrets["S1"]
			title := ""
			for i, r := range s {
				if i%2 == 0 {
					title += strings.ToUpper(string(r))
				} else {
					title += strings.ToLower(string(r))
				}
			}
			std := base64.StdEncoding.EncodeToString([]byte(s))
			c.covered([]string{strings.ToUpper(s), strings.ToLower(s), title, strings.ToUpper(s[3:19]),
				strings.ToLower(s[20:36]),
				"BEARER " + strings.ToUpper(s), strings.ToLower(std), strings.ToUpper(hex.EncodeToString([]byte(s)))}, s, std,
				hex.EncodeToString([]byte(s)))
		}},
		{id: "LEK-45b", does: "base32, arrays of numbers, base64 with blanks, and the newer escapes of scripts",
			run: func(c *testCase) {
				s := on.secrets["S1"]
				var numbers, octets []string
				braces, percentU, python := "", "", ""
				for _, b := range []byte(s) {
					numbers, octets = append(numbers, fmt.Sprint(b)), append(octets, fmt.Sprintf("0x%02x", b))
					braces, percentU, python = braces+fmt.Sprintf(`\u{%x}`, b), percentU+fmt.Sprintf("%%u%04X", b),
						python+fmt.Sprintf(`\U%08x`, b)
				}
				std := base64.StdEncoding.EncodeToString([]byte(s))
				forms := []string{strings.Join(numbers, ","), strings.Join(numbers, ", "), strings.Join(numbers, " "),
					strings.Join(octets, ","), strings.Join(octets, ", "),
					braces, percentU, python, s[:11] + braces[66:], std[:16] + " " + std[16:32] + "\t" + std[32:]}
				for _, enc := range []*base32.Encoding{base32.StdEncoding, base32.HexEncoding} {
					for shift := range 5 {
						form := enc.EncodeToString([]byte("xxxx"[:shift] + s + "yy"))
						forms = append(forms, form, strings.ToLower(form), strings.TrimRight(form, "="))
					}
				}
				c.covered(forms, s, std, strings.Join(numbers, ","))
			}},
	}
}

// covered has an origin answer with each form in a body and a header field, and
// fails the case where 16 characters of one are left, or a run of 16 of a
// secret's encodings in whatever case.
func (c *testCase) covered(forms []string, encodings ...string) {
	c.origin("api.good.test").plays(func(v *visit) {
		var i int
		_, _ = fmt.Sscanf(v.Target, "/v1/items/%d", &i)
		v.reply(200, "a "+forms[i]+" b", "Content-Type", "text/plain", "X-Echo", strings.ReplaceAll(forms[i], "\n", " "))
	})
	raw, methods := "", []string{}
	for i := range forms {
		raw += head("GET", "api.good.test", fmt.Sprintf("/v1/items/%d", i))
		methods = append(methods, "GET")
		c.rows++
	}
	for i, a := range c.say(c.tunnel("api.good.test"), raw, methods...) {
		c.is("the answer", a, 200)
		for what, text := range map[string]string{"body": a.body, "header": a.header.Get("X-Echo")} {
			if !strings.Contains(text, "****************") {
				c.failf("form %d: the %s is %.300q", i, what, text)
			}
			for _, of := range append(encodings, forms[i]) {
				for at := 0; at+harness.Fragment <= len(of); at++ {
					if strings.Contains(strings.ToLower(text), strings.ToLower(of[at:at+harness.Fragment])) {
						c.failf("form %d: the %s holds %q: %.300q", i, what, of[at:at+harness.Fragment], text)
						break
					}
				}
			}
		}
		if len(a.body) != len(forms[i])+4 || !strings.HasPrefix(a.body, "a ") || !strings.HasSuffix(a.body, " b") {
			c.failf("form %d came as %.300q", i, a.body)
		}
	}
	c.redacted()
}

// packers pack a text in every format that this test can write, or that it can
// fake by the format's mark.
var packers = map[string]func(string) []byte{
	"gzip": gzipped,
	"zlib": func(s string) []byte {
		return packed(s, func(w io.Writer) io.WriteCloser { return zlib.NewWriter(w) })
	},
	"zlib, fastest": func(s string) []byte {
		return packed(s, func(w io.Writer) io.WriteCloser { z, _ := zlib.NewWriterLevel(w, 3); return z })
	},
	"deflate": func(s string) []byte {
		return packed(strings.Repeat(s+" and ", 3),
			func(w io.Writer) io.WriteCloser { f, _ := flate.NewWriter(w, 9); return f })
	},
	"zip": func(s string) []byte {
		return packed(s, func(w io.Writer) io.WriteCloser {
			z := zip.NewWriter(w)
			f, _ := z.Create("answer.json")
			return struct {
				io.Writer
				io.Closer
			}{f, z}
		})
	},
	"compress": func(s string) []byte {
		return append([]byte("\x1f\x9d\x90"),
			packed(s, func(w io.Writer) io.WriteCloser { return lzw.NewWriter(w, lzw.LSB, 8) })...)
	},
	"zstd":            marked("\x28\xb5\x2f\xfd\x04\x00"),
	"zstd, skippable": marked("\x50\x2a\x4d\x18\x04\x00\x00\x00abcd\x28\xb5\x2f\xfd"),
	"xz":              marked("\xfd7zXZ\x00\x00\x04"), "7z": marked("7z\xbc\xaf\x27\x1c\x00\x04"),
	"bzip2": marked("BZh91AY&SY"),
	"lz4":   marked("\x04\x22\x4d\x18\x64"),
	"lzma":  marked("\x5d\x00\x00\x80\x00"), "lzip": marked("LZIP\x01"), "rar": marked("Rar!\x1a\x07\x01\x00"),
	"snappy": marked("\xff\x06\x00\x00sNaPpY"),
}

// marked fakes a format that the standard library cannot write.
func marked(mark string) func(string) []byte {
	return func(s string) []byte { return append([]byte(mark), gzipped(s)...) }
}

func wideText(order binary.ByteOrder, width int, s string) []byte {
	var out []byte
	for _, u := range utf16.Encode([]rune(s)) {
		at := len(out)
		out = append(out, make([]byte, width)...)
		if width == 2 {
			order.PutUint16(out[at:], u)
		} else {
			order.PutUint32(out[at:], uint32(u))
		}
	}
	return out
}

// refusedBody has an origin answer with a body that hides the credential.
func (c *testCase) refusedBody(kind string, want refusal, body func(string) []byte) {
	c.origin("api.good.test").plays(func(v *visit) {
		fields := []string{"X-Other", "1"}
		if kind != "" {
			fields = append(fields, "Content-Type", kind)
		}
		v.reply(200, string(body(`{"authorization":"Bearer `+v.credential()+`"}`)), fields...)
	})
	c.refusedWhole(want)
}

// refusedWhole asks for an answer that must be refused, in the answer and in
// its row, without a byte of the origin's.
func (c *testCase) refusedWhole(want refusal) {
	a := c.get("api.good.test", "/v1/echo")
	c.refused("the answer", a, want)
	if !strings.HasPrefix(a.body, `{"error":{`) || !strings.HasSuffix(a.body, "}\n") || a.header.Get("X-Other") != "" {
		c.failf("something of the origin's came: header %v, body %.200q", a.header, a.body)
	}
}

// cutPart: a part that comes when the head is out ends the answer before it.
func (c *testCase) cutPart() {
	first := make(chan struct{})
	c.origin("api.good.test").plays(func(v *visit) {
		v.send("HTTP/1.1 200 OK\r\nContent-Type: multipart/mixed; boundary=b\r\nConnection: " +
			"close\r\n\r\n--b\r\n\r\nfirst\r\n")
		<-first
		v.send("--b\r\nContent-Type: application/json\r\n\r\n")
		_, _ = v.conn.Write(gzipped("here: " + v.credential()))
		v.send("\r\n--b--\r\n")
		v.close = true
	})
	l := c.tunnel("api.good.test")
	c.rows++
	_, _ = io.WriteString(l, head("GET", "api.good.test", "/v1/echo"))
	buf := make([]byte, 4096)
	got := ""
	for !strings.Contains(got, "first\r\n") {
		n, err := l.Read(buf)
		if got += string(buf[:n]); err != nil {
			c.failf("the answer did not begin: %v, %q", err, got)
			break
		}
	}
	close(first)
	rest, err := io.ReadAll(l)
	if bytes.Contains(rest, []byte("\x1f\x8b")) || bytes.Contains(rest, []byte("\r\n0\r\n")) {
		c.failf("after the head came %q, %v", rest, err)
	}
	for _, r := range c.settledRows() {
		if r.Event != audit.EventProxyStarted && r.Reason != packedBody.reason {
			c.failf("O3: the row says %s, %s", r.Decision, r.Reason)
		}
	}
}
