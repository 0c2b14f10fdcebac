package attacks

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/ALRubinger/aileron/proxy"
)

// lek: ways by which an answer may carry a credential into the box.
func lek() category {
	return category{name: "LEK", unrun: map[string]string{
		"LEK-29": "answers have no cap to be cut at",
	}, cases: join(written("responses"), append(lekPacked(), []attack{
		{id: "LEK-01", does: "an echo of every header gives the answer with the credential redacted", run: func(c *testCase) {
			c.origin("api.good.test").plays((*visit).echo)
			a := c.get("api.good.test", "/v1/echo")
			c.is("the echo", a, 200)
			if !strings.Contains(a.body, `"Authorization":"Bearer **********`) {
				c.failf("the echo is not there, or not wiped: %s", a.body)
			}
			c.redacted()
		}},
		{id: "LEK-02", does: "a head that repeats the credential in any of its parts", run: lekHead},
		{id: "LEK-04", does: "a body that comes byte by byte, in packets, records or chunks", run: func(c *testCase) {
			for name, chunked := range map[string]bool{"records": false, "chunks": true} {
				c.each(name, func(c *testCase) {
					c.origin("api.good.test").plays(func(v *visit) {
						body := "before " + v.credential() + " after"
						if chunked {
							v.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
						} else {
							v.send("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", len(body))
						}
						for _, b := range []byte(body) {
							if chunked {
								v.send("1\r\n%c\r\n", b)
							} else {
								_, _ = v.conn.Write([]byte{b})
							}
							<-time.After(time.Millisecond) // so that each is a read of its own
						}
						if chunked {
							v.send("0\r\n\r\n")
						}
					})
					a := c.get("api.good.test", "/v1/echo")
					c.is("the answer", a, 200)
					if want := "before " + stars(40) + " after"; a.body != want {
						c.failf("got %q, want %q", a.body, want)
					}
				})
			}
		}},
		{id: "LEK-05", does: "a credential on every edge that a buffer may have", run: func(c *testCase) {
			c.bulk = true
			c.origin("api.good.test").plays(func(v *visit) {
				s := v.credential()
				var at int
				_, _ = fmt.Sscanf(v.Target, "/v1/items/%d", &at)
				body := bytes.Repeat([]byte("filler; "), 140<<10/8)
				for edge := 4096; edge < len(body)-len(s); edge += 4096 {
					copy(body[edge-at:], s)
				}
				copy(body, s)
				copy(body[len(body)-len(s):], s)
				v.reply(200, string(body))
			})
			l := c.tunnel("api.good.test")
			raw, methods := "", []string{}
			for _, at := range []int{0, 1, 2, 3, 8, 15, 16, 17, 23, 24, 25, 38, 39, 40} {
				raw += head("GET", "api.good.test", fmt.Sprintf("/v1/items/%d", at))
				methods = append(methods, "GET")
				c.rows++
			}
			for i, a := range c.say(l, raw, methods...) {
				c.is("the answer", a, 200)
				if n := strings.Count(a.body, stars(40)); n < 36 {
					c.failf("answer %d has %d credentials redacted", i, n)
				}
			}
		}},
		{id: "LEK-07", does: "base64 of the credential, alone, with its scheme or user, at each alignment",
			run: func(c *testCase) {
				for _, host := range []string{"api.good.test", "basic.good.test"} {
					var forms []string
					s := on.secrets["S1"]
					if host == "basic.good.test" {
						s = "user:" + on.secrets["S4"]
					}
					for _, prefix := range []string{"", "x", "xx", "Bearer ", "{\"a\":\""} {
						for _, suffix := range []string{"", "y", "yy", "yyy"} {
							for _, coding := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding, base64.RawStdEncoding,
								base64.RawURLEncoding} {
								forms = append(forms, coding.EncodeToString([]byte(prefix+s+suffix)))
							}
						}
					}
					c.each(host, func(c *testCase) { c.wiped(host, forms) })
				}
			}},
		{id: "LEK-08", does: "base64 of a document that holds the credential", run: func(c *testCase) {
			doc, _ := json.Marshal(map[string]any{"url": "/v1/echo",
				"headers": map[string]string{"Accept": "*/*", "Authorization": "Bearer " + on.secrets["S1"],
					"Host": "api.good.test"}})
			c.wiped("api.good.test", []string{base64.StdEncoding.EncodeToString(doc), base64.URLEncoding.EncodeToString(doc),
				inLines(base64.StdEncoding.EncodeToString(doc), 76)})
		}},
		{id: "LEK-10", does: "hexadecimal in either case, with what dumps put between bytes", run: func(c *testCase) {
			var forms []string
			for _, format := range []string{"%02x", "%02X"} {
				for _, between := range []string{"", ":", " ", "-", ", ", "0x", ", 0x", `\x`, "\n"} {
					var parts []string
					for _, b := range []byte(on.secrets["S1"]) {
						parts = append(parts, fmt.Sprintf(format, b))
					}
					forms = append(forms, strings.Join(parts, between))
				}
			}
			c.wiped("api.good.test", forms)
		}},
		{id: "LEK-11", does: "percent-encoding of some or all characters, once or twice", run: func(c *testCase) {
			c.each("header", func(c *testCase) { c.wiped("basic.good.test", percents(on.secrets["S4"])) })
			c.each("query", func(c *testCase) { c.wiped("q.good.test", percents(on.secrets["S3"])) })
		}},
		{id: "LEK-14", does: "a coding that is broken off, and one that hides in its own header", run: func(c *testCase) {
			for name, body := range map[string]func(string) []byte{
				"truncated": func(s string) []byte { b := gzipped(s); return b[:len(b)-6] },
				"in the header": func(s string) []byte {
					return packed("x", func(w io.Writer) io.WriteCloser { z := gzip.NewWriter(w); z.Name, z.Comment = s, s; return z })
				},
			} {
				c.each(name, func(c *testCase) { c.refusedCoding([]string{"gzip"}, body) })
			}
		}},
		{id: "LEK-16", does: "a decompression bomb is refused unread", run: func(c *testCase) {
			bomb := gzipped(strings.Repeat("\x00", 16<<20))
			for range 3 {
				bomb = gzipped(string(bomb))
			}
			for _, coding := range []string{"gzip", "gzip, gzip, gzip, gzip", "br", "zstd"} {
				c.each(coding, func(c *testCase) {
					before := heap()
					c.refusedCoding([]string{coding}, func(string) []byte { return bomb })
					if after := heap(); after > before+16<<20 {
						c.failf("the heap grew by %d MiB", (after-before)>>20)
					}
				})
			}
		}},
		{id: "LEK-25", does: "the length of an answer does not depend on how well a guess compresses",
			run: func(c *testCase) {
				c.origin("api.good.test").plays(func(v *visit) {
					text := v.Target + " " + v.credential()
					if strings.Contains(v.Header.Get("Accept-Encoding"), "gzip") {
						v.reply(200, string(gzipped(text)), "Content-Encoding", "gzip")
						return
					}
					v.reply(200, text)
				})
				lengths := map[string]int{}
				raw, methods := "", []string{}
				for i := range 64 {
					guess := fmt.Sprintf("%02d%s", i, on.secrets["S1"][:i%8])
					guess = url.QueryEscape((guess + "__________")[:10])
					raw += head("GET", "api.good.test", "/v1/items?q="+guess, "Accept-Encoding: gzip")
					methods = append(methods, "GET")
					c.rows++
				}
				for i, a := range c.say(c.tunnel("api.good.test"), raw, methods...) {
					c.is("the answer", a, 200)
					lengths[fmt.Sprint(len(a.body)-strings.Count(a.body, "%")*2)]++
					if a.header.Get("Content-Encoding") != "" {
						c.failf("answer %d is compressed", i)
					}
				}
				if len(lengths) != 1 {
					c.failf("there are %d lengths", len(lengths))
				}
			}},
		{id: "LEK-26", does: "short guesses in an echo are never answered with a redaction", run: func(c *testCase) {
			for _, size := range []int{4, 8, 15} {
				c.each(fmt.Sprint(size, " bytes"), func(c *testCase) {
					c.bulk = true
					var body strings.Builder
					s := on.secrets["S1"]
					for i := 0; body.Len() < 256<<10; i++ {
						at := i % (len(s) - size)
						fmt.Fprintf(&body, "%s|%06d|", s[at:at+size], i)
					}
					c.origin("api.good.test").plays(func(v *visit) { v.reply(200, string(v.body())) })
					a := c.post("api.good.test", "/v1/echo", body.String())
					c.is("the echo", a, 200)
					if a.body != body.String() {
						c.failf("the echo was changed: %d stars", strings.Count(a.body, "*"))
					}
					for _, r := range c.settledRows() {
						if r.Redactions != 0 {
							c.failf("a row counts %d redactions", r.Redactions)
						}
					}
				})
			}
		}},
		{id: "LEK-28", does: "the beginning of a credential, at an end of any kind, is not let go", run: lekHeld},
		{id: "LEK-32", does: "what a server computes is not found, and the manual says so", run: func(c *testCase) {
			manual, err := os.ReadFile("../../docs/scrubbing.md")
			c.must(err)
			_, residual, _ := strings.Cut(strings.Join(strings.Fields(string(manual)), " "), "## What is not found")
			for _, word := range []string{"reversed", "encrypted", "hashed", "XORed",
				"one character of the secret in each response", "Archives", "issue tokens"} {
				if !strings.Contains(residual, word) {
					c.failf("docs/scrubbing.md does not say %q", word)
				}
			}
			c.origin("api.good.test").plays(func(v *visit) {
				s := []byte(v.credential())
				sum := sha256.Sum256(s)
				for i, j := 0, len(s)-1; i < j; i, j = i+1, j-1 {
					s[i], s[j] = s[j], s[i]
				}
				v.reply(200, string(s)+" "+hex.EncodeToString(sum[:]))
			})
			a := c.get("api.good.test", "/v1/echo")
			c.is("the answer", a, 200)
			if strings.Contains(a.body, "*") {
				c.failf("it is found now: the manual promises too little")
			}
		}},
		{id: "LEK-35", does: "the plane's own errors quote nothing of the request",
			run: lekErrors},
		{id: "LEK-37", does: "debug pages that dump the request", run: func(c *testCase) {
			for name, page := range map[string]func(*visit) string{
				"html": func(v *visit) string {
					return "<h1>Internal Server Error</h1><table><tr><td>HTTP_AUTHORIZATION</td><td>&#x27;" +
						html.EscapeString("Bearer "+v.credential()) + "&#x27;</td></tr></table>"
				},
				"python": func(v *visit) string {
					return "Traceback (most recent call last):\n  headers={'Authorization': 'Bearer " +
						strings.ReplaceAll(v.credential(), `\`, `\\`) + "'}"
				},
				"node": func(v *visit) string { return fmt.Sprintf("Error: x\n  at f (%q)\n", v.credential()) },
				"raw":  func(v *visit) string { return string(v.Raw) },
			} {
				c.each(name, func(c *testCase) {
					c.origin("api.good.test").plays(func(v *visit) {
						v.reply(500, page(v), "Content-Type",
							"text/html; charset=utf-8")
					})
					c.relayed("the page", c.get("api.good.test", "/v1/items"), 500)
				})
			}
		}},
		{id: "LEK-41", does: "clean data pass unchanged, and an event leaves when it comes", run: lekClean},
		{id: "LEK-43", does: "a client that leaves while a window is held gets nothing of it", run: func(c *testCase) {
			gone := make(chan struct{})
			c.origin("api.good.test").plays(func(v *visit) {
				v.send("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nstart %s", v.credential()[:30])
				<-gone
				v.close = true
			})
			l := c.tunnel("api.good.test")
			c.rows++
			_, _ = io.WriteString(l, head("GET", "api.good.test", "/v1/echo"))
			buf := make([]byte, 4096)
			for got := ""; !strings.Contains(got, "start "); {
				n, err := l.Read(buf)
				if err != nil {
					c.failf("the answer did not begin: %v", err)
					break
				}
				got += string(buf[:n])
			}
			_ = l.Close()
			close(gone)
			if of := on.leaks.Find(c.s.logs()); of != "" {
				c.failf("O4: the log holds %s", of)
			}
		}},
	}...))}
}

func lekHead(c *testCase) {
	for name, answer := range map[string]func(s string) string{
		"name, hex": func(s string) string {
			return "HTTP/1.1 200 OK\r\nX-" + hex.EncodeToString([]byte(s)) + ": 1\r\nContent-Length: 2\r\n\r\nok"
		},
		"name, percent": func(s string) string {
			return "HTTP/1.1 200 OK\r\nX-" + percents(s)[3] + ": 1\r\nContent-Length: 2\r\n\r\nok"
		},
		"name, base64": func(s string) string {
			return "HTTP/1.1 200 OK\r\nX-" + base64.RawURLEncoding.EncodeToString([]byte(s)) +
				": 1\r\nContent-Length: 2\r\n\r\nok"
		},
	} {
		c.each(name, func(c *testCase) {
			c.origin("api.good.test").plays(func(v *visit) { v.send("%s", answer(v.credential())) })
			c.is("the answer", c.get("api.good.test", "/v1/echo"), 200)
		})
	}
}

// lekHeld: the origin ends, breaks off or stalls in the middle of a secret.
func lekHeld(c *testCase) {
	for _, n := range []int{16, 17, 39} {
		for _, end := range []string{"clean", "length", "reset", "stall"} {
			c.each(fmt.Sprintf("%d bytes, %s", n, end), func(c *testCase) {
				done := make(chan struct{})
				c.origin("api.good.test").plays(func(v *visit) {
					part := "data " + v.credential()[:n]
					v.close = true
					switch end {
					case "clean":
						v.send("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n%s", part)
					case "length":
						v.reply(200, part)
					default:
						v.send("HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n%s", part)
					}
					if end == "stall" {
						<-done
					}
				})
				l := c.tunnel("api.good.test")
				c.rows++
				_, _ = io.WriteString(l, head("GET", "api.good.test", "/v1/echo"))
				if end == "stall" { // what is there arrives; then the client gives up
					br := bufio.NewReader(l)
					for line, err := "", error(nil); line != "\r\n" && err == nil; {
						line, err = br.ReadString('\n')
					}
					got := make([]byte, 5)
					if _, err := io.ReadFull(br, got); err != nil || string(got) != "data " {
						c.failf("before the stall: %q, %v", got, err)
					}
					_ = l.Close()
					close(done)
					return
				}
				a := readAnswer(bufio.NewReader(l), "GET")
				if end == "reset" && a.err == nil {
					c.failf("the client took it for whole: %q", a.body)
				}
				if end != "reset" && a.body != "data "+stars(n) {
					c.failf("got %q", a.body)
				}
			})
		}
	}
}

// readHello reads the first TLS record of a connection, which is then closed:
// with bytes that were not read the kernel would reset it.
func readHello(conn net.Conn) {
	head := make([]byte, 5)
	if _, err := io.ReadFull(conn, head); err == nil {
		_, _ = io.CopyN(io.Discard, conn, int64(head[3])<<8|int64(head[4]))
	}
}

// lekErrors: how the plane reports a request that carries a key in its URL
// and does not arrive.
func lekErrors(c *testCase) {
	silent := func(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) }
	for name, failure := range map[string]struct {
		want    refusal
		arrange func(c *testCase)
	}{
		"refused": {unreachable, func(c *testCase) {
			on.names.answers(func(name string, v6 bool) ([]netip.Addr, bool) {
				return []netip.Addr{places["alt.good.test"]}, name == "q.good.test"
			})
			c.reaches = func(d dial) bool { return d.to == netip.AddrPortFrom(places["alt.good.test"], 443) }
		}},
		"not TLS": {notVerified, func(c *testCase) {
			c.origin("q.good.test").takes(func(conn net.Conn) { _, _ = io.WriteString(conn, "HTTP/1.1 400 no\r\n\r\n") })
		}},
		"closed":   {upstreamClosed, func(c *testCase) { c.origin("q.good.test").takes(readHello) }},
		"time-out": {upstreamTimeout, func(c *testCase) { c.origin("q.good.test").plays(func(v *visit) { silent(v.conn) }) }},
		"garbage": {upstreamNotHTTP, func(c *testCase) {
			c.origin("q.good.test").plays(func(v *visit) { v.send("no HTTP at all %s\r\n\r\n", v.Target); v.close = true })
		}},
		"no name": {nameNotResolved, func(*testCase) {
			on.names.answers(func(name string, v6 bool) ([]netip.Addr, bool) { return nil, name == "q.good.test" })
		}},
	} {
		header := patience // what is not slow may take its time on a busy machine
		if failure.want == upstreamTimeout {
			header = 2 * time.Second
		}
		c.elsewhere(name, fixture{set: func(cfg *proxy.Config) { cfg.Upstream.ResponseHeader = header }}, func(c *testCase) {
			c.strays = true
			c.origin("q.good.test").cut()
			failure.arrange(c)
			a := c.get("q.good.test", "/v1/items?x=QCANARY")
			c.refused(name, a, failure.want)
			for _, text := range []string{a.body, fmt.Sprint(a.header), string(c.s.logs()), fmt.Sprint(c.settledRows())} {
				if strings.Contains(text, "QCANARY") || strings.Contains(text, "api_key=") {
					c.failf("the query is quoted: %.200q", text)
				}
			}
		})
	}
}

// lekClean: what holds no secret is not touched, however much it is.
func lekClean(c *testCase) {
	c.each("random data", func(c *testCase) {
		c.bulk = true
		piece := make([]byte, 1<<20)
		_, _ = rand.Read(piece)
		const pieces = 24
		c.origin("api.good.test").plays(func(v *visit) {
			v.send("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", pieces*len(piece))
			for range pieces {
				_, _ = v.conn.Write(piece)
			}
		})
		l := c.tunnel("api.good.test")
		c.rows++
		_, _ = io.WriteString(l, head("GET", "api.good.test", "/v1/echo"))
		before := heap()
		res, err := http.ReadResponse(bufio.NewReader(l), nil)
		c.must(err)
		want, got := sha256.New(), sha256.New()
		for range pieces {
			want.Write(piece)
		}
		n, err := io.Copy(got, res.Body)
		_ = res.Body.Close()
		if n != int64(pieces*len(piece)) || err != nil || !bytes.Equal(want.Sum(nil), got.Sum(nil)) {
			c.failf("%d bytes arrived (%v), or were changed", n, err)
		}
		if after := heap(); after > before+20<<20 {
			c.failf("the heap grew by %d MiB", (after-before)>>20)
		}
		_ = l.Close()
	})
	c.each("events", func(c *testCase) {
		next := make(chan struct{})
		c.origin("api.good.test").plays(func(v *visit) {
			v.send("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
			for i := range 20 {
				event := fmt.Sprintf("data: %d %s\n\n", i, v.credential()[:3]) // each ends in what a secret begins with
				v.send("%x\r\n%s\r\n", len(event), event)
				<-next
			}
			v.send("0\r\n\r\n")
		})
		l := c.tunnel("api.good.test")
		c.rows++
		_, _ = io.WriteString(l, head("GET", "api.good.test", "/v1/echo"))
		res, err := http.ReadResponse(bufio.NewReader(l), nil)
		c.must(err)
		lines := bufio.NewReader(res.Body)
		for i := range 20 {
			event, err := lines.ReadString('\n')
			if !strings.HasPrefix(event, fmt.Sprintf("data: %d ", i)) {
				c.failf("event %d did not come before the next was sent: %q, %v", i, event, err)
			}
			_, _ = lines.ReadString('\n')
			select {
			case next <- struct{}{}:
			case <-time.After(c.s.patience):
				c.failf("the origin did not send event %d", i)
			}
		}
		_, _ = io.Copy(io.Discard, lines)
		_ = res.Body.Close()
	})
}

// wiped has an origin answer with each form in turn, by itself and inside
// text, and in a header field where it fits.
func (c *testCase) wiped(host string, forms []string) {
	c.origin(host).plays(func(v *visit) {
		var i int
		_, _ = fmt.Sscanf(v.Header.Get("X-Form"), "%d", &i)
		fields := []string{"Content-Type", "text/plain"}
		if !strings.ContainsAny(forms[i], "\r\n") {
			fields = append(fields, "X-Echo", forms[i])
		}
		v.reply(200, "a "+forms[i]+" b\n"+forms[i], fields...)
	})
	raw, methods := "", []string{}
	for i := range forms {
		raw += head("GET", host, "/v1/items", fmt.Sprintf("X-Form: %d", i))
		methods = append(methods, "GET")
		c.rows++
	}
	for i, a := range c.say(c.tunnel(host), raw, methods...) {
		c.is("the answer", a, 200)
		for what, text := range map[string]string{"body": a.body, "header": a.header.Get("X-Echo")} {
			if of := on.leaks.Find([]byte(text)); of != "" {
				c.failf("form %d %.200q: the %s holds %s", i, forms[i], what, of)
			}
		}
		if len(a.body) != 2*len(forms[i])+5 || !strings.Contains(a.body, "*") {
			c.failf("form %d %.200q came as %.300q", i, forms[i], a.body)
		}
	}
}

// refusedCoding has an origin send a coded answer although it was asked for
// identity.
func (c *testCase) refusedCoding(codings []string, body func(string) []byte) {
	c.origin("api.good.test").plays(func(v *visit) {
		fields := []string{"Content-Type", "text/plain"}
		for _, coding := range codings {
			fields = append(fields, "Content-Encoding", coding)
		}
		v.reply(200, string(body("here: "+v.credential())), fields...)
	})
	a := c.get("api.good.test", "/v1/echo", "Accept-Encoding: gzip, deflate, br, zstd")
	if h := c.hits("api.good.test"); len(h) != 1 || h[0].Header.Get("Accept-Encoding") != "identity" {
		c.failf("the origin was not asked for identity")
	}
	c.refused("the answer", a, unsafeEncoding)
}

// redacted fails the case unless a row counts what was redacted.
func (c *testCase) redacted() {
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

func stars(n int) string { return strings.Repeat("*", n) }

func inLines(s string, width int) string {
	var lines []string
	for len(s) > width {
		lines, s = append(lines, s[:width]), s[width:]
	}
	return strings.Join(append(lines, s), "\r\n")
}

func percents(s string) []string {
	all, lower := "", ""
	for _, b := range []byte(s) {
		all += fmt.Sprintf("%%%02X", b)
		lower += fmt.Sprintf("%%%02x", b)
	}
	path := url.PathEscape(s)
	return []string{url.QueryEscape(s), path,
		strings.NewReplacer("%2F", "%2f", "%2B", "%2b", "%3D", "%3d", "%5C", "%5c").Replace(url.QueryEscape(s)),
		all, lower, url.QueryEscape(url.QueryEscape(s)), strings.ReplaceAll(all, "%", "%25"),
		strings.ReplaceAll(lower, "%", "%25")}
}

func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
