package attacks

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"io"
	"strings"
)

// lek: ways by which an answer may carry a credential into the box.
func lek() category {
	return category{name: "LEK", cases: []attack{
		{id: "LEK-01", does: "an echo of every header gives the answer with the credential wiped out", run: func(c *trial) {
			c.origin("api.good.test").plays((*visit).echo)
			a := c.get("api.good.test", "/v1/echo")
			c.is("the echo", a, 200)
			if !strings.Contains(a.body, `"Authorization":"Bearer **********`) {
				c.failf("the echo is not there, or not wiped: %s", a.body)
			}
			c.redacted()
		}},
		{id: "LEK-13", does: "a coding that was not asked for hides nothing", run: func(c *trial) {
			for name, coded := range map[string]struct {
				fields []string
				body   func(string) []byte
			}{
				"gzip":         {[]string{"gzip"}, gzipped},
				"x-gzip":       {[]string{"x-gzip"}, gzipped},
				"deflate zlib": {[]string{"deflate"}, func(s string) []byte { return packed(s, func(w io.Writer) io.WriteCloser { return zlib.NewWriter(w) }) }},
				"deflate raw": {[]string{"deflate"}, func(s string) []byte {
					return packed(s, func(w io.Writer) io.WriteCloser { f, _ := flate.NewWriter(w, 5); return f })
				}},
				"twice":      {[]string{"gzip, gzip"}, func(s string) []byte { return gzipped(string(gzipped(s))) }},
				"two fields": {[]string{"identity", "gzip"}, gzipped},
				"br":         {[]string{"br"}, func(s string) []byte { return []byte("\x0b\x02\x80" + s + "\x03") }},
				"zstd":       {[]string{"zstd"}, func(s string) []byte { return []byte("\x28\xb5\x2f\xfd\x04\x00" + s) }},
				"br, gzip":   {[]string{"br, gzip"}, gzipped},
			} {
				c.each(name, func(c *trial) {
					c.origin("api.good.test").plays(func(v *visit) {
						fields := []string{"Content-Type", "text/plain"}
						for _, f := range coded.fields {
							fields = append(fields, "Content-Encoding", f)
						}
						v.reply(200, string(coded.body("here: "+v.credential())), fields...)
					})
					a := c.get("api.good.test", "/v1/echo", "Accept-Encoding: gzip, deflate, br, zstd")
					if h := c.hits("api.good.test"); len(h) != 1 || h[0].Header.Get("Accept-Encoding") != "identity" {
						c.failf("the origin was not asked for identity")
					}
					c.is("the answer", a, 502)
					c.because("the answer", a, "content_encoding")
				})
			}
		}},
		{id: "LEK-17", does: "an interim answer does not arrive", run: func(c *trial) {
			for _, status := range []string{"100 Continue", "102 Processing", "103 Early Hints"} {
				c.each(status[:3], func(c *trial) {
					c.origin("api.good.test").plays(func(v *visit) {
						v.send("HTTP/1.1 %s\r\nLink: <%s>; rel=preload\r\nX-Early: %s\r\n\r\n", status, v.credential(), v.credential())
						v.reply(200, "fine")
					})
					a := c.get("api.good.test", "/v1/echo")
					c.is("the answer", a, 200)
					if a.interim != 0 || a.body != "fine" {
						c.failf("%d interim answers, then %s", a.interim, a)
					}
				})
			}
		}},
		{id: "LEK-18", does: "a trailer arrives wiped or not at all, announced or not", run: func(c *trial) {
			for name, announced := range map[string]string{"announced": "Trailer: X-Late\r\n", "not announced": ""} {
				c.each(name, func(c *trial) {
					c.origin("api.good.test").plays(func(v *visit) {
						v.send("HTTP/1.1 200 OK\r\n%sTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nX-Late: %s\r\n\r\n", announced, v.credential())
					})
					a := c.get("api.good.test", "/v1/echo", "TE: trailers")
					c.is("the answer", a, 200)
				})
			}
		}},
	}}
}

// origin is the first origin of a host.
func (c *trial) origin(host string) *origin {
	for _, port := range ports[host] {
		return on.origins[nameOf(host, port)]
	}
	panic("no origin " + host)
}

// redacted fails the trial unless a row counts what was wiped out.
func (c *trial) redacted() {
	for _, r := range c.settledRows() {
		if r.Redactions > 0 {
			return
		}
	}
	c.failf("O3: no row counts a redaction")
}

func packed(s string, open func(io.Writer) io.WriteCloser) []byte {
	var b bytes.Buffer
	w := open(&b)
	_, _ = io.WriteString(w, s)
	_ = w.Close()
	return b.Bytes()
}

func gzipped(s string) []byte {
	return packed(s, func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) })
}
