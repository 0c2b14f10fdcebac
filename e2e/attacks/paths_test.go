package attacks

import (
	"bufio"
	"io"
	"math/rand/v2"
	"strings"

	"github.com/ALRubinger/aileron/spec"
)

// pth: paths and methods that are judged as one thing and served as another.
func pth() category {
	return category{name: "PTH", cases: join(written("paths"), []attack{
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
		{id: "PTH-31", does: "whatever is taken of mutated paths, is an operation's and is sent as it was judged",
			run: pthMutations},
	})}
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
