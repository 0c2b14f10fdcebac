package attacks

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"regexp"
	"slices"
	"strings"
)

// smg: requests and answers whose end is not where everybody thinks it is.
func smg() category {
	const post = "POST /v1/items HTTP/1.1\r\nHost: api.good.test\r\n"
	return category{name: "SMG", cases: join(written("smuggling"), []attack{
		{id: "SMG-17", does: "an answer in place of 100 Continue does not shift the ones after it", run: smgExpect},
		{id: "SMG-20", does: "an answer before the end of the request leaves no half request in the pool",
			run: func(c *testCase) {
				c.anew = true
				answered := make(chan struct{})
				c.origin("api.good.test").plays(func(v *visit) {
					v.send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nearly")
					<-answered
				})
				l := c.tunnel("api.good.test")
				c.rows++
				_, _ = io.WriteString(l, post+"Content-Length: 1000\r\n\r\n"+strings.Repeat("x", 100))
				a := readAnswer(bufio.NewReader(l), "POST")
				c.is("the answer", a, 200)
				close(answered)
				c.say(l, "GET /admin HTTP/1.1\r\nHost: api.good.test\r\n\r\n")
			}},
		{id: "SMG-21", does: "an answer whose head frames it in two ways is refused on every way upstream, and its " +
			"connection is closed", run: func(c *testCase) {
			for name, head := range map[string]string{
				"length and coding":  "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked",
				"coding and length":  "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 15",
				"two lengths":        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6",
				"plus":               "HTTP/1.1 200 OK\r\nContent-Length: +5",
				"unknown coding":     "HTTP/1.1 200 OK\r\nTransfer-Encoding: xchunked",
				"coding in HTTP/1.0": "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked",
				"folded length":      "HTTP/1.1 200 OK\r\nContent-Length:\r\n 5",
				"bare LF":            "HTTP/1.1 200 OK\nContent-Length: 5", "no HTTP/1": "HTTP/2.0 200 OK\r\nContent-Length: 5",
			} {
				want := upstreamBroken
				if name == "no HTTP/1" {
					want = upstreamNotHTTP
				}
				c.onEveryWay(name, func(c *testCase) {
					c.anew, c.strays = true, true
					c.origin(victim).plays(func(v *visit) {
						v.body()
						c.origin(victim).plays(nil) // before the answer: behind it, the next variant may have begun
						v.send("%s\r\n\r\n5\r\nhello\r\n0\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nPOISON", head)
					})
				}, want)
			}
		}},
		{id: "SMG-29", does: "whatever is taken of mutated requests, is sent in one strict spelling", run: smgMutations},
	})}
}

// unpoisoned asks a few times more, and none of the answers may be another's.
func (c *testCase) unpoisoned(host string) {
	c.origin(host).plays(nil)
	for range 3 {
		a := c.get(host, "/v1/items")
		c.is("a later request", a, 200)
		if a.body != "hello" {
			c.failf("a later request got %q", a.body)
		}
	}
}

func smgExpect(c *testCase) {
	for _, status := range []int{417, 401, 200} {
		c.each(fmt.Sprint(status), func(c *testCase) {
			first := true
			c.origin("api.good.test").plays(func(v *visit) {
				if first {
					first = false
					v.send("HTTP/1.1 %d %s\r\nContent-Length: 5\r\n\r\nearly", status, http.StatusText(status))
					return
				}
				v.reply(200, "second")
			})
			l := c.tunnel("api.good.test")
			c.rows++
			_, _ = io.WriteString(l, head("POST", "api.good.test", "/v1/items", "Expect: 100-continue", "Content-Length: 5"))
			br := bufio.NewReader(l)
			// The answer may come before the body is asked for: then there is no 100.
			if asked, _ := br.Peek(len("HTTP/1.1 100")); string(asked) == "HTTP/1.1 100" {
				_, _ = br.ReadString('\n')
				_, _ = br.ReadString('\n')
				_, _ = io.WriteString(l, "BODY5")
			}
			if a := readAnswer(br, "POST"); status == 200 {
				c.is("the first", a, status)
			} else {
				c.relayed("the first", a, status)
			}
			_, _ = io.WriteString(l, head("GET", "api.good.test", "/v1/items"))
			if a := readAnswer(br, "GET"); a.status != 0 { // it may have been closed
				c.rows++
				if a.status != 200 || a.body != "second" {
					c.failf("the second request got %s", a)
				}
			}
			c.rows++
			if a := c.say(c.tunnel("api.good.test"), head("GET", "api.good.test", "/v1/items"), "GET")[0]; a.body != "second" {
				c.failf("a request on another connection got %s", a)
			}
		})
	}
}

// strictHead is a request head as only one reader can read it.
var strictHead = regexp.MustCompile("^[A-Z]+ /[!-~]* HTTP/1\\.1\r\n(?:[!#$%&'*+.^_`|~0-9A-Za-z-]+: " +
	"[^\\x00-\\x08\\x0a-\\x1f\\x7f]*\r\n)+\r\n")

// smgMutations changes requests at random and compares what the plane takes
// with what it sends.
func smgMutations(c *testCase) {
	c.rows, c.strays = -1, true
	seeds := []string{
		head("GET", "api.good.test", "/v1/items?q=1", "Accept: */*"),
		head("POST", "api.good.test", "/v1/items", "Content-Length: 5", "Content-Type: text/plain") + "hello",
		head("POST", "api.good.test", "/v1/echo", "Transfer-Encoding: chunked") + "5\r\nhello\r\n0\r\n\r\n",
		head("GET", "api.good.test", "/v1/items/42", "Connection: close", "X-Thing: a, b"),
	}
	pieces := []string{"\r\n", "\n", "\r", " ", "\t", ":", ";", ",", "\x00", "\x0b", "%0d%0a", "Content-Length: 0\r\n",
		"Transfer-Encoding: chunked\r\n", "Transfer-Encoding: x\r\n",
		"Host: evil.test\r\n", " HTTP/1.1\r\n", "GET /admin HTTP/1.1\r\n", "0\r\n\r\n", "#", "\xff", "HTTP/1.0", "?", "//",
		"Connection: x\r\n", "X_Y: 1\r\n"}
	random := rand.New(rand.NewPCG(1, 2))
	var all []string
	for i := range 150 {
		raw := seeds[i%len(seeds)]
		for range 1 + random.IntN(4)/3 {
			at, p := random.IntN(len(raw)), pieces[random.IntN(len(pieces))]
			switch random.IntN(3) {
			case 0:
				raw = raw[:at] + p + raw[at:]
			case 1:
				raw = raw[:at] + raw[min(at+1+random.IntN(3), len(raw)):]
			case 2:
				raw = raw[:at] + p + raw[min(at+len(p), len(raw)):]
			}
		}
		l := c.tunnel("api.good.test")
		if l == nil {
			return
		}
		go func() { _, _ = io.WriteString(l, raw); l.end() }()
		_, _ = io.Copy(io.Discard, l)
		_ = l.Close()
		all = append(all, raw)
	}
	hits := c.hits("api.good.test")
	for _, h := range hits {
		if !strictHead.Match(h.Raw) {
			c.failf("this was sent: %q", h.Raw)
		}
		if raw := string(h.Raw); strings.Contains(raw, "Content-Length") && strings.Contains(raw, "Transfer-Encoding") {
			c.failf("this was sent with two framings: %q", h.Raw)
		}
		if !slices.ContainsFunc(all,
			func(raw string) bool { return strings.Contains(raw, h.Method+" "+h.Target+" HTTP/1.") }) {
			c.failf("no client asked for %s %s, and it was sent", h.Method, h.Target)
		}
	}
	if len(hits) < 15 {
		c.failf("only %d of the mutated requests were taken: the mutations are too wild to prove anything", len(hits))
	}
}
