package attacks

import (
	"bufio"
	"crypto/tls"
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
	return category{name: "SMG", cases: []attack{
		{id: "SMG-01", does: "a length beside a transfer coding is refused", run: refusedHeads(map[string]oddHead{
			"": {post + "Content-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nG", twoFramings},
		})},
		{id: "SMG-02", does: "the same the other way round, and a coding in HTTP/1.0", run: refusedHeads(map[string]oddHead{
			"reversed": {post + "Transfer-Encoding: chunked\r\nContent-Length: 6\r\n\r\n0\r\n\r\nG", twoFramings},
			"1.0": {"POST /v1/items HTTP/1.0\r\nHost: api.good.test\r\nTransfer-Encoding: chunked\r\nContent-Length: " +
				"6\r\n\r\n0\r\n\r\nG", twoFramings},
			"1.0 alone": {"POST /v1/items HTTP/1.0\r\nHost: api.good.test\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nG",
				malformed.as("Transfer-Encoding in HTTP/1.0")},
		})},
		{id: "SMG-04", does: "more than one transfer coding is refused", run: refusedHeads(map[string]oddHead{
			"identity": {post + "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n", strangeTE},
			"unknown":  {post + "Transfer-Encoding: chunked\r\nTransfer-Encoding: cow\r\n\r\n0\r\n\r\n", strangeTE},
			"twice":    {post + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", twoCodings},
			"list":     {post + "Transfer-Encoding: cow, chunked\r\n\r\n0\r\n\r\n", strangeTE},
			"empty":    {post + "Transfer-Encoding:\r\n\r\n0\r\n\r\n", strangeTE},
			"vtab":     {post + "Transfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n", oddValue},
		})},
		{id: "SMG-05", does: "a transfer coding with white space where none may be is refused",
			run: refusedHeads(map[string]oddHead{
				"before the colon": {post + "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n", oddName},
				"first field": {"POST /v1/items HTTP/1.1\r\n Transfer-Encoding: chunked\r\nHost: " +
					"api.good.test\r\n\r\n0\r\n\r\n", oddName},
				"tab":    {post + "Transfer-Encoding\t: chunked\r\n\r\n0\r\n\r\n", oddName},
				"folded": {post + "Foo: x\r\n Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", oddName},
			})},
		{id: "SMG-07", does: "two lengths are refused, equal ones too, and what is no number",
			run: refusedHeads(map[string]oddHead{
				"different": {post + "Content-Length: 6\r\nContent-Length: 7\r\n\r\n1234567", twoLengths},
				"equal":     {post + "Content-Length: 6\r\nContent-Length: 6\r\n\r\n123456", twoLengths},
				"list":      {post + "Content-Length: 6, 6\r\n\r\n123456", noNumber},
				"plus":      {post + "Content-Length: +6\r\n\r\n123456", noNumber},
				"hex":       {post + "Content-Length: 0x6\r\n\r\n123456", noNumber},
				"spaces":    {post + "Content-Length: 6 6\r\n\r\n123456", noNumber},
				"zeros":     {post + "Content-Length: 06\r\n\r\n123456", noNumber},
				"huge":      {post + "Content-Length: 18446744073709551622\r\n\r\n123456", noNumber},
			})},
		{id: "SMG-08", does: "a head whose lines do not end in CRLF is refused", run: refusedHeads(map[string]oddHead{
			"bare LF":    {"GET /v1/items HTTP/1.1\r\nHost: api.good.test\nX: y\r\n\r\n", oddValue},
			"LF LF":      {"GET /v1/items HTTP/1.1\nHost: api.good.test\n\n", requestParts},
			"mixed end":  {"GET /v1/items HTTP/1.1\r\nHost: api.good.test\r\n\n", malformed.as("empty line")},
			"bare CR":    {"GET /v1/items HTTP/1.1\r\nHost: api.good.test\rX: y\r\n\r\n", oddValue},
			"CR CR LF":   {"GET /v1/items HTTP/1.1\r\nHost: api.good.test\r\r\n\r\n", oddValue},
			"in request": {"GET /v1/items HTTP/1.1\nHost: api.good.test\r\n\r\n", requestParts},
		})},
		{id: "SMG-10", does: "field names that are no tokens, and values with control characters", run: func(c *testCase) {
			const get = "GET /v1/items HTTP/1.1\r\nHost: api.good.test\r\n"
			refusedHeads(map[string]oddHead{
				"space": {get + "X Y: 1\r\n\r\n", oddName}, "NUL in name": {get + "X\x00: 1\r\n\r\n", oddName},
				"empty": {get + ": 1\r\n\r\n", oddName}, "high": {get + "X\xff: 1\r\n\r\n", oddName},
				"brackets": {get + "(X): 1\r\n\r\n", oddName}, "NUL": {get + "X: a\x00b\r\n\r\n", oddValue},
				"DEL": {get + "X: a\x7fb\r\n\r\n", oddValue}, "CR": {get + "X: a\rb\r\n\r\n", oddValue},
				"no colon": {get + "X\r\n\r\n", oddName},
			})(c)
			c.each("a colon in the value",
				func(c *testCase) { c.is("the request", c.tun("api.good.test", get+"X:Y: 1\r\n\r\n"), 200) })
		}},
		{id: "SMG-11", does: "chunk sizes that two servers may read differently end the request",
			run: brokenChunks(map[string]string{
				"0x": "0x5\r\nhello\r\n0\r\n\r\n", "space": "5 \r\nhello\r\n0\r\n\r\n", "plus": "+5\r\nhello\r\n0\r\n\r\n",
				"minus":     "-5\r\nhello\r\n0\r\n\r\n",
				"extension": "5;a=\"\n\"\r\nhello\r\n0\r\n\r\n", "zeros": "00000000000000005\r\nhello\r\n0\r\n\r\n",
				"huge":  "FFFFFFFFFFFFFFFF\r\nhello\r\n0\r\n\r\n",
				"empty": "\r\nhello\r\n0\r\n\r\n", "LF": "5\nhello\r\n0\r\n\r\n", "second": "5\r\nhello\r\n0x1\r\nX\r\n0\r\n\r\n",
			})},
		{id: "SMG-13", does: "a chunk that does not end where it says ends the request", run: brokenChunks(map[string]string{
			"longer": "1\r\nAXX\r\n0\r\n\r\n", "shorter": "5\r\nhe\r\n0\r\n\r\n", "no CRLF": "5\r\nhello0\r\n\r\n",
		})},
		{id: "SMG-14", does: "each of two requests in one packet has its own decision", run: func(c *testCase) {
			c.rows = 2
			got := c.say(c.tunnel("api.good.test"),
				head("GET", "api.good.test", "/v1/items")+head("GET", "api.good.test", "/admin"), "GET", "GET")
			c.is("the first", got[0], 200)
			c.refused("the second", got[1], operationNone)
			if n := len(c.hits("api.good.test")); n != 1 {
				c.failf("the origin saw %d requests", n)
			}
		}},
		{id: "SMG-16", does: "a request hidden in the body of a GET is not sent", run: func(c *testCase) {
			smuggled := head("GET", "api.good.test", "/admin")
			c.origin("api.good.test").plays(func(v *visit) {
				v.keep = nil // it reads no body of a GET
				v.reply(200, "hello")
			})
			a := c.tun("api.good.test",
				head("GET", "api.good.test", "/v1/items", fmt.Sprintf("Content-Length: %d", len(smuggled)))+smuggled)
			c.refused("the request", a, bodyUndeclared)
			c.untouched()
		}},
		{id: "SMG-17", does: "an answer in place of 100 Continue does not shift the ones after it", run: smgExpect},
		{id: "SMG-19", does: "interim answers are dropped, and a flood of them ends the exchange", run: func(c *testCase) {
			c.each("some", func(c *testCase) {
				c.origin("api.good.test").plays(func(v *visit) {
					v.send("HTTP/1.1 100 Continue\r\nX: y\r\n\r\nHTTP/1.1 102 Processing\r\nX: y\r\n\r\nHTTP/1.1 103 Early " +
						"Hints\r\nLink: </x>\r\n\r\n")
					v.reply(200, "the answer")
				})
				c.rows = 2
				for _, a := range c.say(c.tunnel("api.good.test"),
					head("GET", "api.good.test", "/v1/items")+head("GET", "api.good.test", "/v1/items"), "GET", "GET") {
					c.is("the answer", a, 200)
					if a.interim != 0 || a.body != "the answer" {
						c.failf("%d interim answers, then %q", a.interim, a.body)
					}
				}
			})
			c.each("a flood", func(c *testCase) {
				c.anew, c.strays = true, true
				c.origin("api.good.test").plays(func(v *visit) {
					hints := strings.Repeat("HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n", 100)
					for range 1000 {
						if _, err := io.WriteString(v.conn, hints); err != nil {
							break
						}
					}
					v.close = true
				})
				c.refused("the answer", c.get("api.good.test", "/v1/items"), upstreamHead)
			})
		}},
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
				"204 with coding":    "HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked",
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
		{id: "SMG-22", does: "a second answer without a request is not delivered", run: func(c *testCase) {
			c.anew = true
			poison := func(v *visit) {
				v.send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhelloHTTP/1.1 200 OK\r\nContent-Length: 46\r\n\r\nPOISON%s",
					v.credential())
			}
			c.origin("api.good.test").plays(poison)
			c.is("the first", c.get("api.good.test", "/v1/items"), 200)
			c.unpoisoned("api.good.test")
		}},
		{id: "SMG-23", does: "a body where none may be is not delivered", run: func(c *testCase) {
			for status, line := range map[int]string{204: "204 No Content", 304: "304 Not Modified"} {
				for _, framing := range []string{"Content-Length: 44\r\n", "Transfer-Encoding: chunked\r\n", ""} {
					c.each(fmt.Sprint(status, " ", framing), func(c *testCase) {
						c.anew, c.strays = true, true
						c.origin("api.good.test").plays(func(v *visit) {
							v.send("HTTP/1.1 %s\r\n%s\r\nHTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nPOISON", line, framing)
						})
						a := c.get("api.good.test", "/v1/items")
						if framing == "" || status == 304 && strings.HasPrefix(framing, "Content-Length") {
							c.is("the answer", a, status)
						} else { // it announces what its status does not have
							c.refused("the answer", a, upstreamBroken)
						}
						if strings.Contains(a.body, "POISON") {
							c.failf("the body arrived")
						}
						c.unpoisoned("api.good.test")
					})
				}
			}
		}},
		{id: "SMG-25", does: "a CONNECT with a body is refused, and the body goes nowhere", run: func(c *testCase) {
			for name, framing := range map[string]string{"length": "Content-Length: 4\r\n\r\nABCD",
				"chunked": "Transfer-Encoding: chunked\r\n\r\n4\r\nABCD\r\n0\r\n\r\n"} {
				c.each(name, func(c *testCase) {
					c.refused("CONNECT", c.fwd("CONNECT api.good.test:443 HTTP/1.1\r\nHost: api.good.test:443\r\n"+c.authorization()+
						framing), malformed.as("CONNECT has no body"))
					c.untouched()
				})
			}
			c.each("early bytes", func(c *testCase) { // what comes with the CONNECT is the tunnel's, and no TLS
				c.rows++
				c.say(c.dial(), "CONNECT api.good.test:443 HTTP/1.1\r\nHost: api.good.test:443\r\n"+c.authorization()+"\r\nABCD",
					"CONNECT")
				c.untouched()
			})
		}},
		{id: "SMG-26", does: "what follows a CONNECT that was refused is never forwarded on its account",
			run: func(c *testCase) {
				next := "GET http://plain.good.test/v1/items HTTP/1.1\r\nHost: plain.good.test\r\n"
				c.each("not allowed", func(c *testCase) { // the tunnel opens, and what is in it is not TLS
					c.rows++
					c.is("CONNECT", c.say(c.dial(),
						"CONNECT evil.test:443 HTTP/1.1\r\nHost: evil.test:443\r\n"+c.authorization()+"\r\n"+next+c.authorization()+
							"\r\n", "CONNECT")[0], 200)
					c.untouched()
				})
				c.each("no token", func(c *testCase) {
					c.rows++
					c.refused("CONNECT", c.say(c.dial(),
						"CONNECT evil.test:443 HTTP/1.1\r\nHost: evil.test:443\r\n\r\n"+next+c.authorization()+"\r\n", "CONNECT")[0],
						noToken)
					c.untouched()
				})
				c.each("malformed", func(c *testCase) {
					c.rows++
					c.refused("CONNECT", c.say(c.dial(),
						"CONNECT /evil HTTP/1.1\r\nHost: evil.test:443\r\n"+c.authorization()+"\r\n"+next+c.authorization()+"\r\n",
						"CONNECT")[0], malformed.as("no plain host:port"))
					c.untouched()
				})
			}},
		{id: "SMG-28", does: "empty lines before a request are bounded", run: func(c *testCase) {
			for n, want := range map[int]refusal{1: taken, 2: taken, 3: requestParts, 1000: requestParts,
				500_000: requestParts} {
				c.each(fmt.Sprint(n), func(c *testCase) {
					c.judged("the request", c.tun("api.good.test",
						strings.Repeat("\r\n", n)+head("GET", "api.good.test", "/v1/items")), want)
				})
			}
		}},
		{id: "SMG-30", does: "an answer whose length can be read in two ways is refused, or read in one, and poisons nothing",
			run: func(c *testCase) {
				for name, fields := range map[string]string{
					"two lengths": "Content-Length: 5\r\nContent-Length: 6", "a list": "Content-Length: 5, 6",
					"negative": "Content-Length: -5", "plus": "Content-Length: +5", "no number": "Content-Length: 5x",
					"length and chunked": "Content-Length: 5\r\nTransfer-Encoding: chunked",
					"gzip, chunked":      "Transfer-Encoding: gzip, chunked",
					"chunked twice":      "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
					"unknown coding":     "Transfer-Encoding: cow", "coding and a blank": "Transfer-Encoding : chunked",
					"huge": "Content-Length: 99999999999999999999",
				} {
					c.each(name, func(c *testCase) {
						c.strays, c.anew = true, true
						c.origin("api.good.test").plays(func(v *visit) {
							v.send("HTTP/1.1 200 OK\r\n%s\r\n\r\n5\r\nhello\r\n0\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nPOISON",
								fields)
							v.close = true
						})
						// which has no length then, and ends with the connection
						if a := c.get("api.good.test", "/v1/echo"); a.status == 200 && a.err == nil && a.body != "hello" &&
							name != "coding and a blank" {
							c.failf("the client got %q", a.body)
						}
						c.unpoisoned("api.good.test")
					})
				}
			}},
		{id: "SMG-31", does: "a field of an answer cannot become two", run: func(c *testCase) {
			for name, field := range map[string]string{"CR": "X-Echo: a\rX-Injected: b", "NUL": "X-Echo: a\x00b",
				"folded": "X-Echo: a\r\n X-Injected: b", "a blank in the name": "X-Echo : a",
				"a coding": "Transfer-Encoding : chunked", "no token": "X(Echo): a", "LF": "X-Echo: a\nX-Other: b",
				"a name with CR": "X-E\rcho: a", "reason": ""} {
				c.each(name, func(c *testCase) {
					c.origin("api.good.test").plays(func(v *visit) {
						if field == "" {
							v.send("HTTP/1.1 200 OK\rX-Injected: b\r\nContent-Length: 5\r\n\r\nhello")
							return
						}
						v.send("HTTP/1.1 200 OK\r\n%s\r\nContent-Length: 5\r\n\r\nhello", field)
					})
					want := upstreamBroken
					switch name {
					case "a coding":
						want = oddFieldName
					case "a blank in the name":
						want = taken // without the field
					}
					c.judged("the answer", c.get("api.good.test", "/v1/echo"), want)
					judged := false
					for _, l := range c.lines {
						got, _, _ := strings.Cut(string(l.received()), "\r\n\r\n")
						if _, inside := l.Conn.(*tls.Conn); !inside {
							continue
						}
						judged = judged || strings.HasPrefix(got, "HTTP/1.1 ")
						if strings.ContainsAny(strings.ReplaceAll(got, "\r\n", ""), "\r\n\x00") {
							c.failf("the client got the head %q", got)
						}
						// The reason phrase of a denial has parentheses of its own.
						if _, fields, _ := strings.Cut(got, "\r\n"); strings.Contains(fields, " :") || strings.Contains(fields, "(") {
							c.failf("the client got a name that is none: %q", got)
						}
					}
					if !judged {
						c.failf("there is no head to judge")
					}
				})
			}
		}},
		{id: "SMG-29", does: "whatever is taken of mutated requests, is sent in one strict spelling", run: smgMutations},
	}}
}

// oddHead is a head that must be refused, and how.
type oddHead struct {
	raw  string
	want refusal
}

// What may be wrong with a head, each found by a defence of its own.
var (
	twoFramings  = malformed.as("both a Content-Length and a Transfer-Encoding")
	twoCodings   = malformed.as("more than one Transfer-Encoding")
	twoLengths   = malformed.as("more than one Content-Length")
	noNumber     = malformed.as("Content-Length is not a number")
	strangeTE    = malformed.at(501).as("not \"chunked\" alone")
	oddName      = malformed.as("not a token followed by a colon")
	oddValue     = malformed.as("value has a control character")
	requestParts = malformed.as("METHOD SP TARGET SP VERSION")
)

// refusedHeads sends each in a tunnel of its own. All must be refused, with
// the connection closed and nothing sent.
func refusedHeads(heads map[string]oddHead) func(*testCase) {
	return func(c *testCase) {
		for name, odd := range heads {
			c.each(name, func(c *testCase) {
				a := c.tun("api.good.test", odd.raw+head("GET", "api.good.test", "/v1/items"))
				c.refused("the request", a, odd.want)
				c.untouched()
			})
		}
	}
}

// brokenChunks sends each as a body. The request must fail, and nothing of it
// may stay on an upstream connection that is used again.
func brokenChunks(bodies map[string]string) func(*testCase) {
	return func(c *testCase) {
		for name, body := range bodies {
			c.each(name, func(c *testCase) {
				c.anew, c.strays = true, true
				a := c.tun("api.good.test",
					head("POST", "api.good.test", "/v1/items", "Transfer-Encoding: chunked")+body+
						head("GET", "api.good.test", "/v1/items"))
				c.ended("the request", a, bodyBroken)
				for _, h := range c.hits("api.good.test") {
					if h.Method == "GET" {
						c.failf("what came after the body was taken for a request")
					}
				}
			})
		}
	}
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
