package attacks

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/ALRubinger/aileron/e2e/harness"
	"github.com/ALRubinger/aileron/vault"
)

// crd: the credential's slot, and the box's own credentials.
func crd() category {
	return category{name: "CRD", cases: join(written("credentials"), []attack{
		{id: "CRD-11", does: "a secret that does not fit a header field is not taken, and not quoted",
			run: func(c *testCase) {
				for _, bad := range []string{"SCANARY-0123\r\nX: y", "SCANARY-\x000123", "SCANARY-\x7f0123", " SCANARY-0123",
					"SCANARY-0123 ", "SCANARY-é-0123", "SCANARY\n\n0123", "\tSCANARY-0123"} {
					if _, err := vault.NewSecret([]byte(bad)); err == nil || strings.Contains(err.Error(), "CANARY") {
						c.failf("%q: %v", bad, err)
					}
				}
				for _, good := range []string{"SCANARY-0123\n", "SCANARY-0123\r\n", "SCANARY 0123"} {
					if s, err := vault.NewSecret([]byte(good)); err != nil || s.Reveal() != strings.TrimRight(good, "\r\n") {
						c.failf("%q: %v", good, err)
					}
				}
			}},
		{id: "CRD-13", does: "a secret that is too short to be told from text is not taken", run: func(c *testCase) {
			for _, bad := range []string{"abc", "null", "true", "1234567", "aaaaaaaaaaaa", ""} {
				if _, err := vault.NewSecret([]byte(bad)); err == nil {
					c.failf("%q was taken", bad)
				}
			}
		}},
		{id: "CRD-14", does: "an operation whose credential is not bound sends nothing",
			f: &fixture{unbound: []string{"api", "q"}}, run: func(c *testCase) {
				c.unfit = true
				c.refused("api", c.get("api.good.test", "/v1/items"), notBound)
				c.refused("q", c.get("q.good.test", "/v1/items?x=1"), notBound)
				c.untouched()
				c.is("another connector", c.get("key.good.test", "/v1/items"), 200)
				for _, d := range on.dials.take() {
					if d.to.Addr() == places["api.good.test"] || d.to.Addr() == places["q.good.test"] {
						c.failf("%s was dialled", d)
					}
				}
			}},
		{id: "CRD-16", does: "who has not this session's token is sent away", run: func(c *testCase) {
			other := newWorld(c.t, fixture{})
			other.stop()
			field := "Proxy-Authorization: Basic " + basicAuth("s", other.token) + "\r\n\r\n"
			c.refused("CONNECT", c.fwd("CONNECT api.good.test:443 HTTP/1.1\r\nHost: api.good.test:443\r\n"+field), noToken)
			c.refused("in clear", c.fwd("GET http://plain.good.test/v1/items HTTP/1.1\r\nHost: plain.good.test\r\n"+field),
				noToken)
			c.untouched()
		}},
		{id: "CRD-17", does: "a client that authenticates only when it is asked to gets through", run: crdReactive},
		{id: "CRD-22", does: "no field makes the plane send a POST twice when a pooled connection dies",
			run: func(c *testCase) {
				for _, name := range []string{"Idempotency-Key", "X-Idempotency-Key", "idempotency-key"} {
					c.each(name, func(c *testCase) {
						c.is("what fills the pool", c.get("api.good.test", "/v1/items"), 200)
						c.origin("api.good.test").plays(func(v *visit) {
							v.body()
							v.close = true // it was processed, and the answer is lost
						})
						a := c.post("api.good.test", "/v1/items", "", name+": k")
						c.refused("the POST", a, upstreamClosed)
						posts := 0
						for _, h := range c.hits("api.good.test") {
							if h.Method == "POST" {
								posts++
							}
						}
						if posts != 1 {
							c.failf("the origin got %d POSTs", posts)
						}
					})
				}
			}},
	})}
}

// unwritten fails the case when a word is in a row or in the log.
func (c *testCase) unwritten(words ...string) {
	for _, word := range words {
		if strings.Contains(fmt.Sprint(c.settledRows()), word) || strings.Contains(string(c.s.logs()), word) {
			c.failf("%q was written down", word)
		}
	}
}

func crdReactive(c *testCase) {
	c.each("on a new connection", func(c *testCase) {
		c.refused("the first", c.fwd("CONNECT api.good.test:443 HTTP/1.1\r\nHost: api.good.test:443\r\n\r\n"), noToken)
		c.is("the second", c.get("api.good.test", "/v1/items"), 200)
	})
	for _, program := range []string{"curl", "git"} {
		if !harness.Has(c.t, program) {
			c.t.Logf("%s is not here to be tried", program)
			continue
		}
		c.each(program, func(c *testCase) {
			c.rows = -1
			root := filepath.Join(on.dir, "session.pem")
			c.must(os.WriteFile(root, c.s.plane.ca.RootPEM(), 0o600))
			proxy := "http://s:" + c.s.token + "@" + c.s.addr
			cmd := exec.Command("curl", "-sS", "--max-time", "20", "--proxy-anyauth", "-x", proxy, "--cacert", root,
				"https://api.good.test/v1/items")
			if program == "git" {
				cmd = exec.Command("git", "-c", "http.proxy="+proxy, "-c", "http.proxyAuthMethod=anyauth", "-c",
					"http.sslCAInfo="+root, "ls-remote", "https://api.good.test/v1/items")
			}
			cmd.Env = append(os.Environ(), "HOME="+on.dir, "GIT_TERMINAL_PROMPT=0", "GIT_SSL_CAINFO="+root)
			out, err := cmd.CombinedOutput()
			c.plain(string(out))
			switch program {
			case "curl":
				if err != nil || string(out) != "hello" {
					c.failf("curl: %v, %q", err, out)
				}
			case "git": // what it asks for is not allowed; that it hears so is the point
				if !strings.Contains(string(out), "403") {
					c.failf("git: %v, %q", err, out)
				}
			}
		})
	}
}
