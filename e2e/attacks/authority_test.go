package attacks

import (
	"fmt"

	"net"
	"strings"
)

// aut: request lines that name more than one host, or none.
func aut() category {
	return category{name: "AUT", cases: []attack{
		{id: "AUT-01", does: "an absolute target to a host that is not allowed, under the Host of one that is",
			run: func(c *testCase) {
				a := c.absolute("http://evil.test/v1/items", "api.good.test")
				c.refused("the request", a, otherAuthority)
				c.untouched()
			}},
		{id: "AUT-02", does: "the Host of another, beside an absolute target", run: func(c *testCase) {
			c.refused("the request", c.absolute("http://plain.good.test/v1/items", "evil.test"), otherAuthority)
			c.untouched()
		}},
		{id: "AUT-04", does: "a host before an @", run: func(c *testCase) {
			for _, target := range []string{"http://api.good.test@evil.test/", "http://api.good.test:443@evil.test/",
				"http://evil.test@plain.good.test/v1/items"} {
				c.each(target, func(c *testCase) {
					c.refused("the request", c.absolute(target, "api.good.test"), malformed.as("no plain host"))
					c.untouched()
				})
			}
		}},
		{id: "AUT-05", does: "a CONNECT to a host before an @",
			run: refusedConnects("api.good.test@evil.test:443", "api.good.test:443@evil.test:443")},
		{id: "AUT-07", does: "a CONNECT to a URL",
			run: refusedConnects("https://api.good.test:443/", "https://api.good.test:443", "/api.good.test:443",
				"//api.good.test:443")},
		{id: "AUT-08", does: "a CONNECT without a port", run: refusedConnects("api.good.test", "api.good.test:", ":443")},
		{id: "AUT-10", does: "brackets within brackets",
			run: refusedConnects("[[api.good.test]]:443", "[[::1]]:443", "[api.good.test]:443", "[::1:443")},
		{id: "AUT-11", does: "a zone that ends like an allowed name",
			run: refusedConnects("[fe80::1%25lo.good.test]:443", "[::1%25.good.test]:443", "[fe80::1%lo]:443")},
		{id: "AUT-13", does: "escapes in a host",
			run: refusedConnects("evil.test%00.good.test:443", "evil.test%2e.good.test:443", "api%2egood.test:443")},
		{id: "AUT-14", does: "escapes in Host", run: func(c *testCase) {
			for _, host := range []string{"evil.test%00.good.test", "api.good.test%00", "api%2egood.test",
				"api.good.test@evil.test", "api.good.test/evil", "api.good.test,evil.test", "api.good.test evil.test"} {
				c.each(fmt.Sprintf("%q", host), func(c *testCase) {
					c.refused("the request", c.tun("api.good.test", "GET /v1/items HTTP/1.1\r\nHost: "+host+"\r\n\r\n"),
						otherAuthority)
					c.untouched()
				})
			}
		}},
		{id: "AUT-16", does: "ports that are read in two ways", run: func(c *testCase) {
			var targets []string
			for _, port := range []string{"0443", "+443", "%20443", "443%20", "65979", "-1", "0", "https", "443:443", "",
				"65536", "4294967739", "0x1bb", "443.", "４４３"} {
				targets = append(targets, "api.good.test:"+port)
			}
			refusedConnects(targets...)(c)
		}},
		{id: "AUT-17", does: "a port that the operation does not name", run: func(c *testCase) {
			for _, port := range []string{"22", "80", "8443", "25", "3306"} {
				c.each(port, func(c *testCase) {
					a := c.get("api.good.test:"+port, "/v1/items")
					c.refused("the request", a, hostNotAllowed)
					if !strings.Contains(a.body, `"network:api.good.test:`+port+`"`) {
						c.failf("the refusal does not say what was asked for: %s", a)
					}
					c.untouched()
				})
			}
		}},
		{id: "AUT-19", does: "an https target that comes in clear is never fetched", run: func(c *testCase) {
			a := c.absolute("https://api.good.test/v1/items", "api.good.test")
			c.refused("the request", a, insecureScheme)
			c.untouched()
		}},
		{id: "AUT-20", does: "schemes other than http", run: func(c *testCase) {
			for _, target := range []string{"ftp://plain.good.test/", "file:///etc/passwd", "gopher://plain.good.test/", "urn:x",
				"ws://plain.good.test/", "HTTP://plain.good.test/v1/items", "http:/plain.good.test/", "http:plain.good.test"} {
				c.each(target, func(c *testCase) {
					a := c.absolute(target, "plain.good.test")
					c.refused("the request", a, malformed.as("scheme"))
					if strings.Contains(a.body, "root:") {
						c.failf("a file came: %s", a)
					}
					c.untouched()
				})
			}
		}},
		{id: "AUT-22", does: "the proxy is no way to itself", run: func(c *testCase) {
			_, port, _ := net.SplitHostPort(c.s.addr)
			c.each("absolute", func(c *testCase) {
				c.refused("the request", c.absolute("http://"+c.s.addr+"/healthz", c.s.addr), hostNotAllowed)
			})
			for _, to := range []string{c.s.addr, "localhost:" + port, "host.docker.internal:" + port, "[::1]:" + port} {
				c.each(to, func(c *testCase) {
					a := c.tunClear(to, "GET /healthz HTTP/1.1\r\nHost: "+to+"\r\n\r\n")
					c.refused("the request", a, hostNotAllowed)
					for _, d := range on.dials.take() { // only the harness itself
						if d.to.String() != c.s.addr || d.from.Port() == 0 {
							c.failf("%s was dialled", d)
						}
					}
				})
			}
		}},
		{id: "AUT-23", does: "two Hosts are refused, and written down", run: func(c *testCase) {
			for _, hosts := range [][2]string{{"api.good.test", "evil.test"}, {"evil.test", "api.good.test"},
				{"api.good.test", "api.good.test"}} {
				c.each(strings.Join(hosts[:], ", "), func(c *testCase) {
					c.refused("the request", c.tun("api.good.test",
						"GET /v1/items HTTP/1.1\r\nHost: "+hosts[0]+"\r\nHost: "+hosts[1]+"\r\n\r\n"), malformed.as("more than one Host"))
					c.untouched()
				})
			}
		}},
		{id: "AUT-25", does: "no Host: refused in HTTP/1.1, and in HTTP/1.0 only the target counts", run: func(c *testCase) {
			c.each("1.1", func(c *testCase) {
				c.refused("the request", c.tun("api.good.test", "GET /v1/items HTTP/1.1\r\n\r\n"), malformed.as("no Host"))
				c.untouched()
			})
			c.each("1.0", func(c *testCase) {
				c.is("the request", c.fwd("GET http://plain.good.test/v1/items HTTP/1.0\r\n"+c.authorization()+"\r\n"), 200)
			})
			c.each("1.0, no token", func(c *testCase) {
				c.refused("the request", c.fwd("GET http://plain.good.test/v1/items HTTP/1.0\r\n\r\n"), noToken)
				c.untouched()
			})
		}},
		{id: "AUT-26", does: "versions other than HTTP/1.0 and HTTP/1.1", run: func(c *testCase) {
			for _, version := range []string{"HTTP/1.2", "HTTP/2.0", "HTTP/1.10", "http/1.1", "HTTP/1.1x", "HTTP/0.9",
				"HTTP/01.1", "HTTP/1.1,", ""} {
				c.each(version, func(c *testCase) {
					c.refused("the request", c.tun("api.good.test", "GET /v1/items "+version+"\r\nHost: api.good.test\r\n\r\n"),
						malformed.at(505))
					c.untouched()
				})
			}
		}},
		{id: "AUT-28", does: "methods are compared as they are written, and one blank stands between the parts",
			run: func(c *testCase) {
				parts, method := malformed.as("METHOD SP TARGET SP VERSION"), malformed.as("the method is not a token")
				for line, want := range map[string]refusal{"get /v1/items HTTP/1.1": operationNone,
					"GeT /v1/items HTTP/1.1": operationNone, "GET\t/v1/items HTTP/1.1": parts, "GET  /v1/items HTTP/1.1": parts,
					"GET /v1/items  HTTP/1.1": parts, " GET /v1/items HTTP/1.1": method, "GET /v1/items HTTP/1.1 ": parts,
					"GET /v1/items\tHTTP/1.1": parts, "G@T /v1/items HTTP/1.1": method} {
					c.each(fmt.Sprintf("%q", line), func(c *testCase) {
						c.refused("the request", c.tun("api.good.test", line+"\r\nHost: api.good.test\r\n\r\n"), want)
						c.untouched()
					})
				}
			}},
		{id: "AUT-29", does: "HTTP/2 without ALPN", run: func(c *testCase) {
			const preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
			c.each("outside", func(c *testCase) { c.refused("the preface", c.fwd(preface), malformed.at(505)) })
			c.each("inside", func(c *testCase) { c.refused("the preface", c.tun("api.good.test", preface), malformed.at(505)) })
		}},
		{id: "AUT-31", does: "the proxies of the environment, which all lead to the capture, are not used",
			run: func(c *testCase) {
				c.is("the request", c.get("api.good.test", "/v1/items"), 200)
				c.is("in clear", c.absolute("http://plain.good.test/v1/items", "plain.good.test"), 200)
			}},
	}}
}

// absolute asks the proxy itself for a target in absolute form.
func (c *testCase) absolute(target, host string) answer {
	return c.fwd("GET " + target + " HTTP/1.1\r\nHost: " + host + "\r\n" + c.authorization() + "\r\n")
}

// refusedConnects asks for each tunnel. None may open, with Host equal to the
// target or to an allowed one.
func refusedConnects(targets ...string) func(*testCase) {
	return func(c *testCase) {
		for _, target := range targets {
			for _, host := range []string{target, "api.good.test:443"} {
				c.each(fmt.Sprintf("%q with Host %q", target, host), func(c *testCase) {
					c.refused("CONNECT", c.fwd("CONNECT "+target+" HTTP/1.1\r\nHost: "+host+"\r\n"+c.authorization()+"\r\n"),
						malformed)
					c.untouched()
				})
			}
		}
	}
}

// tunClear sends bytes without TLS in a tunnel, and returns the response.
func (c *testCase) tunClear(hostport, raw string) answer {
	c.rows++
	l, a := c.connect(hostport)
	if a.status != 200 {
		return a
	}
	method, _, _ := strings.Cut(raw, " ")
	return c.say(l, raw, method)[0]
}
