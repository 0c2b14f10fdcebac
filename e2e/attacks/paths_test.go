package attacks

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"

	"github.com/ALRubinger/aileron/spec"
)

// pth: paths and methods that are judged as one thing and served as another.
func pth() category {
	return category{name: "PTH", cases: []attack{
		{id: "PTH-01", does: "dot segments",
			run: refusedPaths(dotSegment, "/v1/items/../../admin", "/v1/items/./42", "/..", "/v1/items/..")},
		{id: "PTH-02", does: "escaped dot segments",
			run: refusedPaths(needlessEscape, "/v1/%2e%2e/admin", "/v1/%2E./admin", "/v1/.%2e/admin")},
		{id: "PTH-04", does: "escaped slashes",
			run: refusedPaths(escapedSlash, "/v1/..%2fadmin", "/v1/items/42%2F..%2F..%2Fadmin", "/v1%2fitems")},
		{id: "PTH-05", does: "dot segments that are escaped twice",
			run: refusedPaths(escapedPercent, "/v1/%252e%252e/admin", "/v1/items/%252e%252e%252fadmin")},
		{id: "PTH-07", does: "backslashes, as they are and escaped", run: func(c *testCase) {
			refusedPaths(oddCharacter, `/v1\..\admin`, `/v1/items/..\admin`)(c)
			refusedPaths(escapedSlash, "/v1/items%5c..%5c..%5cadmin")(c)
		}},
		{id: "PTH-08", does: "empty segments",
			run: refusedPaths(emptySegment, "//admin", "/v1//items", "///v1/items", "/v1/items//42")},
		{id: "PTH-10", does: "escaped control characters",
			run: refusedPaths(escapedControl, "/v1/items%00.json", "/v1/items%0d%0aX:y", "/v1/items%09", "/v1/items/%00",
				"/v1/items/a%7f")},
		{id: "PTH-11", does: "a fragment", run: refusedPaths(fragmented, "/v1/items#/../admin", "/v1/items?q=1#x")},
		{id: "PTH-13", does: "bytes that are no ASCII",
			run: refusedPaths(notASCII, "/v1/items\xff", "/v1/ïtems", "/v1/items/\xc3")},
		{id: "PTH-14", does: "overlong UTF-8",
			run: refusedPaths(notUTF8, "/v1/%c0%ae%c0%ae/admin", "/v1/%e0%80%ae/admin", "/v1/items/%c0%af")},
		{id: "PTH-16", does: "another case is another path", run: refusedPaths(operationNone, "/V1/ITEMS", "/v1/Items")},
		{id: "PTH-17", does: "a slash or a dot at the end is another path", run: func(c *testCase) {
			refusedPaths(operationNone, "/v1/items/", "/v1/items/42/")(c)
			refusedPaths(dotSegment, "/v1/items/.")(c)
			refusedPaths(needlessEscape, "/v1/items/%2e")(c)
		}},
		{id: "PTH-19", does: "escapes of what needs none",
			run: refusedPaths(needlessEscape, "/%76%31/items", "/v1/item%73", "/v1/items/%34%32")},
		{id: "PTH-20", does: "a method that no operation names", run: func(c *testCase) {
			for _, method := range []string{"PUT", "PATCH", "COPY", "MOVE", "PROPFIND", "PURGE", "FOO", "HEAD", "OPTIONS",
				"TRACE", "GETS"} {
				c.each(method, func(c *testCase) {
					a := c.tun("api.good.test", head(method, "api.good.test", "/v1/items"))
					c.refused(method, a, operationNone)
					c.untouched()
				})
			}
		}},
		{id: "PTH-22", does: "OPTIONS * is refused, and written down", run: func(c *testCase) {
			c.each("inside", func(c *testCase) {
				c.refused("OPTIONS *", c.tun("api.good.test", head("OPTIONS", "api.good.test", "*")), malformed.as("not a path"))
			})
			c.each("outside", func(c *testCase) {
				// the API's door, which answers to its own names
				c.refused("OPTIONS *", c.fwd("OPTIONS * HTTP/1.1\r\nHost: api.good.test\r\n"+c.authorization()+"\r\n"),
					otherAuthority)
			})
		}},
		{id: "PTH-23", does: "fields that override the method do not arrive", run: func(c *testCase) {
			names := []string{"X-HTTP-Method-Override", "X-HTTP-Method", "X-Method-Override", "X_HTTP_METHOD_OVERRIDE",
				"X-Http_Method-Override"}
			var fields []string
			for _, n := range names {
				fields = append(fields, n+": DELETE")
			}
			c.is("the POST", c.post("api.good.test", "/v1/items", "x", fields...), 200)
			c.absent("api.good.test", "method", "delete")
		}},
		{id: "PTH-25", does: "fields that override the path do not arrive", run: func(c *testCase) {
			var fields []string
			for _, n := range []string{"X-Original-URL", "X-Rewrite-URL", "X-Forwarded-Path", "X-Accel-Redirect", "X-Sendfile",
				"X-Override-URL", "X-Original-URI", "X-Forwarded-Prefix", "X-Forwarded-Uri"} {
				fields = append(fields, n+": /the-other-path")
			}
			c.is("the GET", c.get("api.good.test", "/v1/items", fields...), 200)
			c.absent("api.good.test", "the-other-path")
		}},
		{id: "PTH-26", does: "a template variable is one plain segment", run: func(c *testCase) {
			for id, want := range map[string]refusal{
				"42": taken, "~": taken, "*": taken, "a.b": taken, "a:b": taken, "a%20b": taken, "a%3fb": taken, "a%23b": taken,
				"..": dotSegment, ".": dotSegment, "%2e%2e": needlessEscape, "a%2fb": escapedSlash, "a%5cb": escapedSlash,
				"a/b": operationNone, "": operationNone,
				strings.Repeat("a", 4096): malformed.as("longer than 4096"), "%00": escapedControl, "..;": oddCharacter,
				";..": oddCharacter, "..;x=y": oddCharacter,
				"a;b": oddCharacter, "a%": malformed, "%zz": malformed, "%25": escapedPercent,
			} {
				c.each(fmt.Sprintf("%.12q", id), func(c *testCase) {
					c.permits = func(h hit) bool { return want == taken && h.Target == "/v1/items/"+id }
					c.judged("the request", c.get("api.good.test", "/v1/items/"+id), want)
					if want != taken {
						c.untouched()
					}
				})
			}
		}},
		{id: "PTH-28", does: "two credentials for one request: the session does not start, and both are named",
			run: func(c *testCase) {
				wide, err := spec.Load([]byte(`[connector]
name = "github://attacks/wide"
version = "1.0.0"
[capabilities.network]
hosts = ["api.good.test"]
[capabilities.credential]
kind = "bearer"
[provides]
intents = ["attacks"]
`), []byte(`{"schema_version":"aileron.connector.v1","connector":{"fqn":"github://attacks/wide","version":"1.0.0"},
"tools":[{"name":"wide","operations":[
{"name":"all","method":"GET","path":"/v1/{rest...}","hosts":["api.good.test"],"credential":"bearer"}]}]}`))
				c.must(err)
				narrow, err := loadConnector("api")
				c.must(err)
				for _, order := range [][]*spec.Connector{{wide, narrow}, {narrow, wide}} {
					_, err = spec.NewIndex(order)
					if err == nil || !strings.Contains(err.Error(), "attacks/wide") || !strings.Contains(err.Error(), "attacks/api") {
						c.failf("the two were combined: %v", err)
					}
				}
			}},
		{id: "PTH-29", does: "a credential is injected where an operation says so, and one step beside it nowhere",
			run: pthSurface},
		{id: "PTH-31", does: "whatever is taken of mutated paths, is an operation's and is sent as it was judged",
			run: pthMutations},
		{id: "PTH-32", does: "a GET, HEAD or DELETE with a body is refused", run: func(c *testCase) {
			for name, framing := range map[string]string{"length": "Content-Length: 5\r\n\r\nhello",
				"chunked": "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"} {
				for method, path := range map[string]string{"GET": "/v1/items", "DELETE": "/v1/items/42", "HEAD": "/v1/items"} {
					c.each(method+" "+name, func(c *testCase) {
						a := c.tun("api.good.test", method+" "+path+" HTTP/1.1\r\nHost: api.good.test\r\n"+framing)
						c.refused(method, a, map[string]refusal{"GET": bodyUndeclared, "DELETE": bodyUndeclared,
							"HEAD": operationNone}[method])
						c.untouched()
					})
				}
			}
		}},
	}}
}

// What may be wrong with a path, each found by a defence of its own.
var (
	dotSegment     = malformed.as("dot segment")
	emptySegment   = malformed.as("empty segment")
	escapedSlash   = malformed.as("escaped slash")
	escapedControl = malformed.as("escaped control character")
	escapedPercent = malformed.as("escaped percent sign")
	needlessEscape = malformed.as("needs no escape")
	oddCharacter   = malformed.as("read differently by servers")
	fragmented     = malformed.as("fragment")
	notASCII       = malformed.as("not plain ASCII")
	notUTF8        = malformed.as("not UTF-8")
)

// refusedPaths asks for each, which must be this refusal; none may reach the
// origin.
func refusedPaths(want refusal, targets ...string) func(*testCase) {
	return func(c *testCase) {
		for _, target := range targets {
			c.each(fmt.Sprintf("%q", target), func(c *testCase) {
				a := c.get("api.good.test", target)
				c.refused("the request", a, want)
				c.untouched()
			})
		}
	}
}

// absent fails the case when a request to host holds one of these words, in
// any case, anywhere.
func (c *testCase) absent(host string, words ...string) {
	hits := c.hits(host)
	if len(hits) == 0 {
		c.failf("%s got no request", host)
	}
	for _, h := range hits {
		for _, word := range words {
			if strings.Contains(strings.ToLower(string(h.Raw)), strings.ToLower(word)) {
				c.failf("%s got %q", host, h.Raw)
			}
		}
	}
}

func pthSurface(c *testCase) {
	for _, op := range []struct{ secret, host, method, path string }{
		{"S1", "api.good.test", "GET", "/v1/items"}, {"S1", "api.good.test", "POST", "/v1/items"},
		{"S1", "api.good.test", "GET", "/v1/items/7"},
		{"S1", "api.good.test", "DELETE", "/v1/items/7"}, {"S1", "api.good.test", "GET", "/v1/echo"},
		{"S1", "api.good.test", "POST", "/v1/echo"},
		{"S2", "key.good.test", "GET", "/v1/items"}, {"S3", "q.good.test", "GET", "/v1/items"},
		{"S4", "basic.good.test", "GET", "/v1/items"},
		{"S5a", "oauth.good.test", "GET", "/v1/items"}, {"S6", "alt.good.test:8443", "GET", "/v1/items"},
	} {
		ask := func(c *testCase, method, hostport, path string) answer {
			fields := []string{}
			if method == "POST" {
				fields = append(fields, "Content-Length: 0")
			}
			return c.tun(hostport, head(method, hostport, path, fields...))
		}
		c.each(op.method+" "+op.host+op.path, func(c *testCase) {
			c.is("the operation", ask(c, op.method, op.host, op.path), 200) // that it carries its secret is O2's
		})
		c.each(op.method+" "+op.host+op.path+", beside", func(c *testCase) {
			host, _, _ := strings.Cut(op.host, ":")
			c.refused("another method", ask(c, "PATCH", op.host, op.path), operationNone)
			c.refused("another path", ask(c, op.method, op.host, op.path+"x/y"), operationNone)
			c.refused("another port", ask(c, op.method, host+":9443", op.path), hostNotAllowed)
			c.refused("another host", ask(c, op.method, "x."+op.host, op.path), hostNotAllowed)
			c.untouched()
		})
	}
}

// pthMutations asks for paths that are changed at random, many in a tunnel.
// O2 judges what arrives: it must be an operation's, and equal to its row.
func pthMutations(c *testCase) {
	c.rows, c.bulk = -1, true
	seeds := []string{"/v1/items", "/v1/items/42", "/v1/echo", "/v1/items?q=1&limit=2", "/v1/items/a-b_c.d"}
	pieces := []string{".", "..", "/", "//", "/.", "/..", "%2e", "%2E%2e", "%2f", "%5c", "%00", "%25", "%252e", ";",
		";x=y", "..;", "\\", "?", "&", "=", "%", "%4", "A", "~", "*", "'", "%20", "+", "@", ":", "%c0%ae", "admin",
		"/../admin", "%2e%2e/admin", "|", "{", "^"}
	random := rand.New(rand.NewPCG(3, 4))
	const rounds = 500
	var l *line
	var br *bufio.Reader
	for range rounds {
		target := seeds[random.IntN(len(seeds))]
		for range 1 + random.IntN(2) {
			at, p := 1+random.IntN(len(target)-1), pieces[random.IntN(len(pieces))]
			if random.IntN(3) == 0 {
				target = target[:at] + p + target[min(at+len(p), len(target)):]
			} else {
				target = target[:at] + p + target[at:]
			}
		}
		if l == nil {
			if l = c.tunnel("api.good.test"); l == nil {
				return
			}
			br = bufio.NewReader(l)
		}
		_, _ = io.WriteString(l, head("GET", "api.good.test", target))
		a := readAnswer(br, "GET")
		if r := (refusal{a.status, a.class, a.reason, ""}); a.status != 200 && r != malformed && r != operationNone &&
			r != queryNotDeclared {
			c.failf("%s: got %s", target, a) // which of them is the specification's own to say
		}
		if a.last {
			_ = l.Close()
			l = nil
		}
	}
	hits := c.hits("api.good.test")
	if len(hits) < rounds/30 {
		c.failf("only %d of the mutated paths were taken: the mutations are too wild to prove anything", len(hits))
	}
}
