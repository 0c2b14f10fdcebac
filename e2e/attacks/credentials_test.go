package attacks

import (
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/ALRubinger/aileron/e2e/harness"
	"github.com/ALRubinger/aileron/vault"
)

// crd: the credential's slot, and the box's own credentials.
func crd() category {
	return category{name: "CRD", cases: []attack{
		{id: "CRD-01", does: "the box's own Authorization is replaced", run: func(c *testCase) {
			c.is("the request", c.get("api.good.test", "/v1/items", "Authorization: Bearer ATTACKER"), 200)
			c.injected("ATTACKER")
		}},
		{id: "CRD-02", does: "however it is written and repeated", run: func(c *testCase) {
			for name, fields := range map[string][]string{
				"two":        {"Authorization: Bearer ATTACKER1", "Authorization: Basic ATTACKER2"},
				"lower case": {"authorization: Bearer ATTACKER"}, "upper case": {"AUTHORIZATION: Bearer ATTACKER"},
				"blanks": {"Authorization:   Bearer ATTACKER \t "}, "empty": {"Authorization:"},
				"other carriers": {"X-Api-Key: ATTACKER", "Cookie: sid=ATTACKER", "X-Auth-Token: ATTACKER",
					"Private-Token: ATTACKER", "X-Amz-Security-Token: ATTACKER", "Proxy-Authorization: Bearer ATTACKER",
					"X-Goog-Api-Key: ATTACKER", "X-Vault-Token: ATTACKER", "X-Csrf-Token: ATTACKER"},
			} {
				c.each(name, func(c *testCase) {
					c.is("the request", c.get("api.good.test", "/v1/items", fields...), 200)
					c.injected("ATTACKER")
				})
			}
		}},
		{id: "CRD-04", does: "the box's own credentials in the query are refused or taken off", run: func(c *testCase) {
			for _, name := range []string{"access_token", "key", "api_key", "oauth_token", "ACCESS_TOKEN", "access%5ftoken",
				"access_token[]"} {
				// the one declares its names
				for path, want := range map[string]refusal{"/v1/items": queryNotDeclared, "/v1/echo": taken} {
					c.each(path+"?"+name, func(c *testCase) {
						a := c.get("api.good.test", path+"?"+name+"=ATTACKER")
						c.judged("the request", a, want)
						for _, h := range c.hits("api.good.test") {
							if strings.Contains(h.Target, "ATTACKER") {
								c.failf("the origin got %s", h.Target)
							}
						}
					})
				}
			}
		}},
		{id: "CRD-05", does: "the credential's query name is there once, for every parser", run: func(c *testCase) {
			doubt := queryNotDeclared.as("cannot be read without doubt")
			for query, want := range map[string]refusal{
				"api_key=ATTACKER": taken, "api_key=ATTACKER&api_key=ATTACKER": taken, "api%5fkey=ATTACKER": taken,
				"%61pi_key=ATTACKER": taken, "api_key": taken,
				"x=1%26api_key=ATTACKER": taken, "x=1%3bapi_key=ATTACKER": taken, "x=%zz&api_key=ATTACKER": taken,
				"x=1;api_key=ATTACKER": malformed.as("';'"),
				"API_KEY=ATTACKER":     queryNotDeclared, "api_key[]=ATTACKER": queryNotDeclared,
				"api_key%5b%5d=ATTACKER": queryNotDeclared, "api.key=ATTACKER": queryNotDeclared,
				"api+key=ATTACKER": queryNotDeclared, "api_key%00=ATTACKER": doubt, "&api_key=ATTACKER": doubt,
				"x=1&&api_key=ATTACKER": doubt,
			} {
				c.each(query, func(c *testCase) {
					c.permits = func(h hit) bool { return h.origin == "q.good.test:443" && h.Method == "GET" }
					a := c.get("q.good.test", "/v1/items?"+query)
					c.judged("the request", a, want)
					for _, h := range c.hits("q.good.test") {
						_, raw, _ := strings.Cut(h.Target, "?")
						values, _ := url.ParseQuery(raw) // without the pairs that cannot be read
						if got := values["api_key"]; len(got) != 1 || got[0] != on.secrets["S3"] {
							c.failf("the origin reads api_key as %d values", len(got))
						}
						for name, v := range values {
							folded := strings.NewReplacer(".", "_", " ", "_", "[]", "").Replace(strings.ToLower(name))
							if name != "api_key" && (folded == "api_key" || strings.Contains(name, "\x00")) {
								c.failf("another parser reads api_key as %q", v)
							}
						}
					}
				})
			}
		}},
		{id: "CRD-06", does: "the Connection field cannot take the injected credential off", run: func(c *testCase) {
			c.is("the request", c.get("api.good.test", "/v1/items", "Connection: authorization, x-api-key, host"), 200)
		}},
		{id: "CRD-07", does: "fields of the hop, and those that Connection names, do not arrive", run: func(c *testCase) {
			c.is("the request", c.get("api.good.test", "/v1/items", "Connection: close, keep-alive, x-foo", "X-Foo: HOPONLY",
				"Keep-Alive: HOPONLY", "Proxy-Connection: HOPONLY",
				"TE: trailers, gzip", "Trailer: X-HopOnly", "Upgrade: h2c"), 200)
			c.absent("api.good.test", "HOPONLY", "\r\nTE:", "\r\nTrailer:", "\r\nUpgrade:", "\r\nConnection:", "\r\nKeep-Alive:",
				"\r\nProxy-Connection:")
		}},
		{id: "CRD-08", does: "the proxy's own authorization goes nowhere", run: func(c *testCase) {
			c.each("inside", func(c *testCase) {
				c.is("the request", c.get("api.good.test", "/v1/items", "Proxy-Authorization: Basic PCANARY"), 200)
				c.absent("api.good.test", "PCANARY", "Proxy-")
				c.unwritten("PCANARY", c.s.token)
			})
			c.each("in clear", func(c *testCase) {
				c.is("the request", c.absolute("http://plain.good.test/v1/items", "plain.good.test"), 200)
				c.absent("plain.good.test", "Proxy-", c.s.token, basicAuth("s", c.s.token))
				c.unwritten(c.s.token, basicAuth("s", c.s.token))
			})
			c.each("folded", func(c *testCase) {
				c.refused("the request", c.tun("api.good.test",
					"GET /v1/items HTTP/1.1\r\nHost: api.good.test\r\nX: y\r\n proxy-authorization: PCANARY\r\n\r\n"),
					malformed.as("not a token"))
				c.untouched()
				c.unwritten("PCANARY")
			})
		}},
		{id: "CRD-10", does: "names that servers fold into a credential's", run: func(c *testCase) {
			for _, field := range []string{"X_Api_Key: ATTACKER", "Authorization_: ATTACKER", "X-Api_Key: ATTACKER",
				"authorization-: ATTACKER"} {
				c.each(field, func(c *testCase) {
					c.is("the request", c.get("api.good.test", "/v1/items", field), 200)
					c.absent("api.good.test", "ATTACKER")
				})
			}
			for _, field := range []string{"X-Api-Key : ATTACKER", "X-Api-Key\t: ATTACKER", "Authorization\x0b: ATTACKER",
				" Authorization: ATTACKER"} {
				c.each(fmt.Sprintf("%q", field), func(c *testCase) {
					c.refused("the request", c.get("api.good.test", "/v1/items", field), malformed.as("not a token"))
					c.untouched()
				})
			}
		}},
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
		{id: "CRD-16", does: "who has not this session's token is sent away", run: crdTokens},
		{id: "CRD-17", does: "a client that authenticates only when it is asked to gets through", run: crdReactive},
		{id: "CRD-19", does: "an argument of an operation stays the value of its parameter", run: argumentsInject},
		{id: "CRD-20", does: "where no credential is declared, none is added, and the box's own may pass",
			run: func(c *testCase) {
				c.is("the request", c.get("plain.good.test", "/v1/items", "Authorization: Bearer its-own"), 200)
				if h := c.hits("plain.good.test"); len(h) == 1 && h[0].Header.Get("Authorization") != "Bearer its-own" {
					c.failf("Authorization is %q", h[0].Header["Authorization"])
				}
			}},
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
	}}
}

// injected fails the case unless each request carries exactly the session's
// Authorization, and nothing of the box's.
func (c *testCase) injected(canary string) {
	for _, h := range c.hits("api.good.test") {
		if got := h.Header["Authorization"]; len(got) != 1 || got[0] != "Bearer "+on.secrets["S1"] {
			c.failf("the origin got %d Authorization fields: %q", len(got), got)
		}
	}
	c.absent("api.good.test", canary)
}

// unwritten fails the case when a word is in a row or in the log.
func (c *testCase) unwritten(words ...string) {
	for _, word := range words {
		if strings.Contains(fmt.Sprint(c.settledRows()), word) || strings.Contains(string(c.s.logs()), word) {
			c.failf("%q was written down", word)
		}
	}
}

func crdTokens(c *testCase) {
	other := newWorld(c.t, fixture{})
	other.stop()
	bad := map[string]string{
		"none": "", "wrong": "Proxy-Authorization: Basic " + basicAuth("s", "wrong") + "\r\n",
		"of another session": "Proxy-Authorization: Basic " + basicAuth("s", other.token) + "\r\n",
		"wrong bearer":       "Proxy-Authorization: Bearer wrong\r\n",
		"prefix":             "Proxy-Authorization: Bearer " + c.s.token[:10] + "\r\n",
		"as user":            "Proxy-Authorization: Basic " + basicAuth(c.s.token, "") + "\r\n",
		"digest":             "Proxy-Authorization: Digest " + c.s.token + "\r\n",
		"twice":              c.authorization() + c.authorization(),
		"no base64":          "Proxy-Authorization: Basic !!!\r\n",
		"in Authorization":   "Authorization: Bearer " + c.s.token + "\r\n",
		"in a cookie":        "Cookie: token=" + c.s.token + "\r\n",
	}
	for name, field := range bad {
		c.each(name, func(c *testCase) {
			a := c.fwd("CONNECT api.good.test:443 HTTP/1.1\r\nHost: api.good.test:443\r\n" + field + "\r\n")
			c.refused("CONNECT", a, noToken)
			if a.header.Get("Proxy-Authenticate") == "" {
				c.failf("a 407 without Proxy-Authenticate")
			}
			c.refused("in clear", c.fwd("GET http://plain.good.test/v1/items HTTP/1.1\r\nHost: plain.good.test\r\n"+field+
				"\r\n"), noToken)
			c.untouched()
			c.unwritten(c.s.token)
		})
	}
	for name, field := range map[string]string{
		"empty user": "Proxy-Authorization: Basic " + basicAuth("", c.s.token),
		"bearer":     "Proxy-Authorization: Bearer " + c.s.token,
		"lower case": "proxy-authorization: basic " + basicAuth("x", c.s.token),
		"blanks":     "Proxy-Authorization:  Basic  " + basicAuth("x", c.s.token) + " ",
	} {
		c.each(name, func(c *testCase) {
			c.is("in clear", c.fwd("GET http://plain.good.test/v1/items HTTP/1.1\r\nHost: plain.good.test\r\n"+field+"\r\n\r\n"),
				200)
		})
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
