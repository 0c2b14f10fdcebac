package attacks

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/netip"
	"regexp"
	"strings"
)

// api: the session's own endpoints, asked by who may not.
func api() category {
	return category{name: "API", cases: []attack{
		{id: "API-01", does: "no endpoint answers without this session's token, wherever else a token stands",
			run: func(c *testCase) {
				old := newWorld(c.t, fixture{connectors: []string{"plain"}})
				expired := old.token
				old.stop()
				for name, field := range map[string]string{
					"no token": "", "garbage": "Authorization: Bearer garbage",
					"an ended session's": "Authorization: Bearer " + expired,
					"another scheme":     "Authorization: Token " + c.s.token,
					"basic":              "Authorization: Basic " + basicAuth("s", c.s.token),
					"in a cookie":        "Cookie: token=" + c.s.token, "in a field of its own": "X-Api-Key: " + c.s.token,
					"half of it":        "Authorization: Bearer " + c.s.token[:20],
					"the proxy's field": "Proxy-Authorization: Bearer " + c.s.token,
					"two of them":       "Authorization: Bearer x\r\nAuthorization: Bearer " + c.s.token,
				} {
					c.each(name, func(c *testCase) { c.strangers(field, "") })
				}
				for _, parameter := range []string{"token", "access_token", "key"} {
					c.each("in the query as "+parameter, func(c *testCase) { c.strangers("", "?"+parameter+"="+c.s.token) })
				}
				c.each("nothing of them is kept", func(c *testCase) {
					text, err := json.Marshal(c.s.rows(0))
					c.must(err)
					for what, kept := range map[string]string{"the log": string(c.s.logs()), "the audit rows": string(text)} {
						if strings.Contains(kept, expired) || strings.Contains(kept, c.s.token) {
							c.failf("%s hold a token", what)
						}
					}
				})
			}},
		{id: "API-02", does: "the box's token opens nothing of the owner's, and nothing happens", run: func(c *testCase) {
			for route, want := range owners {
				for _, method := range []string{"GET", "POST", "PUT", "DELETE"} {
					for name, a := range c.doors(method, route, "Authorization: Bearer "+c.s.token) {
						c.refused(method+" "+route+" "+name, a, want)
					}
				}
			}
			for route, want := range map[string]refusal{"//v1/audit": notFound, "/v1/%61udit": notFound, "/v1/./audit": notFound,
				"/v1/session/../audit": notFound,
				"/V1/audit":            notFound, "/v1/audit/": ownerOnly, "/v1/session/": notFound, "/v1/session;/audit": notFound,
				"/v1/session%2f..%2faudit": notFound} {
				for name, a := range c.doors("GET", route, "Authorization: Bearer "+c.s.token) {
					c.refused(route+" "+name, a, want)
				}
			}
			c.untouched()
		}},
		{id: "API-03", does: "the endpoints answer under no other name than their listener's", run: apiHosts},
		{id: "API-04", does: "a web page is refused even with the token, and no page may read an answer",
			run: func(c *testCase) {
				bearer := "Authorization: Bearer " + c.s.token
				for _, page := range []string{"Origin: https://evil.test", "Origin: null", "Origin: http://" + c.s.addr,
					"Sec-Fetch-Site: cross-site", "Sec-Fetch-Site: same-site", "Sec-Fetch-Site: none"} {
					for name, a := range c.doors("GET", "/v1/session", bearer, page) {
						c.refused(page+" "+name, a, crossSite)
						c.unshared(a)
					}
				}
				for kind, body := range map[string]string{"text/plain": `{"connector_fqn":"github://attacks/api"}`,
					"application/x-www-form-urlencoded": "tool=api&operation=items.list"} {
					for _, route := range []string{"/v1/session/stop", "/v1/connector-operations/run", "/v1/session"} {
						c.rows++
						a := c.ask("POST", route, body, "Content-Type: "+kind, "Referer: https://evil.test/")
						c.refused("a form", a, noToken.at(401))
						c.unshared(a)
					}
				}
			}},
		{id: "API-05", does: "a preflight is granted nothing, that of a private network included", run: func(c *testCase) {
			for _, route := range []string{"/v1/session", "/v1/session/stop", "/v1/connector-operations/run", "/healthz"} {
				for _, more := range []string{"", "Access-Control-Request-Private-Network: true",
					"Authorization: Bearer " + c.s.token} {
					c.rows = -1 // healthz writes none
					fields := []string{"Origin: https://evil.test", "Access-Control-Request-Method: POST",
						"Access-Control-Request-Headers: authorization"}
					if more != "" {
						fields = append(fields, more)
					}
					a := c.ask("OPTIONS", route, "", fields...)
					if route != "/healthz" {
						c.refused("a preflight of "+route, a, crossSite)
					}
					c.unshared(a)
				}
			}
		}},
		{id: "API-07", does: "a session's token tells and stops nothing of another session", run: func(c *testCase) {
			other := newWorld(c.t, fixture{connectors: []string{"alt"}})
			defer other.stop()
			theirs := other.plane.Describe().ID
			bearer := "Authorization: Bearer " + c.s.token
			c.each("its name on its own", func(c *testCase) {
				c.rows = 3
				for what, a := range map[string]answer{
					"in the query": c.ask("GET", "/v1/session?session_id="+theirs, "", bearer),
					"in a field": c.ask("GET", "/v1/session", "", bearer, "X-Aileron-Session: "+theirs,
						"Aileron-Session-Id: "+theirs),
					"in the path": c.ask("GET", "/v1/session/"+theirs, "", bearer),
					"in the list": c.ask("GET", "/v1/sessions/"+theirs, "", bearer),
					"in a body":   c.ask("POST", "/v1/session/stop", `{"session_id":"`+theirs+`"}`, bearer),
				} {
					if strings.Contains(a.body, theirs) || a.status == 200 &&
						!strings.Contains(a.body, c.s.plane.plane.Describe().ID) {
						c.failf("%s: %s", what, a)
					}
				}
			})
			c.elsewhere("its token on the other", fixture{connectors: []string{"api", "plain"}}, func(d *testCase) {
				d.strangers(bearer, "")
				d.rows++
				d.refused("a tunnel", d.say(d.dial(),
					"CONNECT api.good.test:443 HTTP/1.1\r\nHost: api.good.test:443\r\n"+c.authorization()+"\r\n", "CONNECT")[0],
					noToken)
			})
		}},
		{id: "API-08", does: "a call that names no operation of the session, or fits none, is refused unsent",
			run: apiOperations},
		{id: "API-10", does: "the session listens where it was told to, and there it wants the token", run: apiListens},
		{id: "API-11", does: "there are no profiles, variables or metrics to read", run: func(c *testCase) {
			for _, route := range []string{"/debug/pprof", "/debug/pprof/heap", "/debug/pprof/cmdline", "/debug/vars",
				"/metrics", "/v1/metrics", "/v1/debug/pprof/heap", "/debug/requests"} {
				for name, a := range c.doors("GET", route, "Authorization: Bearer "+c.s.token) {
					c.refused(route+" "+name, a, notFound)
				}
				for name, a := range c.doors("GET", route) {
					c.refused(route+" without a token, "+name, a, noToken.at(401))
				}
			}
		}},
		{id: "API-13", does: "the endpoints read requests as strictly as the proxy", run: func(c *testCase) {
			bearer := "Host: " + c.s.addr + "\r\nAuthorization: Bearer " + c.s.token + "\r\n"
			for name, r := range map[string]struct {
				raw  string
				want refusal
			}{
				"two lengths": {"POST /v1/session HTTP/1.1\r\n" + bearer +
					"Content-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nG",
					malformed.as("both a Content-Length and a Transfer-Encoding")},
				"bare line feeds": {"GET /v1/session HTTP/1.1\nHost: x\n\n", malformed.as("request line")},
				"a bare return":   {"GET /v1/session HTTP/1.1\r\nHost: x\rA: b\r\n\r\n", malformed.as("control character")},
				"returns":         {"GET /v1/session HTTP/1.1\r\nHost: x\r\r\n\r\n", malformed.as("control character")},
				"a head too large": {"GET /v1/session HTTP/1.1\r\n" + bearer + "A: " + repeated("x", 65<<10) + "\r\n\r\n",
					headTooLarge},
				"too many fields": {"GET /v1/session HTTP/1.1\r\n" + bearer + repeated("A: b\r\n", 1001) + "\r\n",
					headTooLarge.as("too many header fields")},
				"fields by million": {"GET /v1/session HTTP/1.1\r\n" + bearer + repeated("a:\r\n", 1<<18) + "\r\n", headTooLarge},
				"a huge body": {"POST /v1/connector-operations/run HTTP/1.1\r\n" + bearer +
					"Content-Length: 999999999999999\r\n\r\n", bodyTooLarge},
			} {
				c.each(name, func(c *testCase) { c.refused(name, c.fwd(r.raw), r.want) })
			}
			c.each("one after the other", func(c *testCase) {
				c.rows = 1
				raw := "GET /v1/session HTTP/1.1\r\n" + bearer + "\r\nGET /v1/audit HTTP/1.1\r\n" + bearer + "\r\n"
				answers := c.say(c.dial(), raw, "GET", "GET")
				c.is("the first", answers[0], 200)
				c.refused("the second", answers[1], ownerOnly)
			})
		}},
		{id: "API-14", does: "no refusal of any class tells paths, addresses, queries or the program's inside",
			run: apiErrors},
		{id: "API-15", does: "a call of an action stays within the action and the connector that it pins", f: &fixture{},
			run: namedActions},
	}}
}

// owners are the endpoints that only the owner's socket may have, and those
// that other programs of this kind have.
var owners = map[string]refusal{"/v1/audit": ownerOnly, "/v1/audit/01ARZ3NDEKTSV4RRFFQ69G5FAV": ownerOnly,
	"/v1/audit/export": ownerOnly,
	"/v1/vault/status": ownerOnly, "/v1/vault/unlock": ownerOnly, "/v1/vault/lock": ownerOnly,
	"/v1/session/stop": ownerOnly,
	"/v1/sessions":     notFound, "/v1/approvals": notFound, "/v1/connectors": notFound,
	"/v1/connectors/install": notFound,
	"/v1/bindings":           notFound,
	"/v1/config":             notFound, "/v1/reload": notFound, "/v1/shutdown": notFound,
	"/shutdown": notFound, "/": notFound}

// ask sends one request to the listener itself.
func (c *testCase) ask(method, target, body string, fields ...string) answer {
	if body != "" {
		fields = append(fields, fmt.Sprintf("Content-Length: %d", len(body)))
	}
	return c.say(c.dial(), head(method, c.s.addr, target, fields...)+body, method)[0]
}

// doors sends one request by each way that leads to the endpoints.
func (c *testCase) doors(method, target string, fields ...string) map[string]answer {
	c.rows += 3
	all := map[string]answer{"directly": c.ask(method, target, "", fields...)}
	through := append([]string{strings.TrimSuffix(c.authorization(), "\r\n")}, fields...)
	all["in the absolute form"] = c.say(c.dial(),
		head(method, "aileron.internal", "http://aileron.internal"+target, through...), method)[0]
	if l, a := c.connect("aileron.internal:80"); a.status == 200 {
		all["in a tunnel"] = c.say(l, head(method, "aileron.internal", target, fields...), method)[0]
	} else {
		c.failf("a tunnel to the endpoints: %s", a)
	}
	return all
}

// strangers asks for everything with what is not the token.
func (c *testCase) strangers(field, query string) {
	var fields []string
	if field != "" {
		fields = []string{field}
	}
	for _, route := range []string{"/v1/session", "/v1/audit", "/v1/vault/unlock", "/v1/session/stop",
		"/v1/connector-operations/run", "/v1/sandbox-proxy/requests", "/v1/none", "/"} {
		c.rows++
		a := c.ask("GET", route+query, "", fields...)
		c.refused("GET "+route, a, noToken.at(401))
		c.unshared(a)
	}
}

// unshared fails the case when a web page could read the answer.
func (c *testCase) unshared(a answer) {
	for name := range a.header {
		if strings.HasPrefix(name, "Access-Control-") {
			c.failf("the answer has %s", name)
		}
	}
}

// apiListens asks the kernel where the built program listens.
func apiListens(c *testCase) {
	p := newPerson(c.t)
	p.install("plain")
	elsewhere := places["plain.good.test"].String()
	c.t.Helper()
	here := p.start()
	port := here.port()
	if got := p.listening(here); len(got) != 1 || got[0] != "127.0.0.1:"+port {
		c.failf("it listens on %q", got)
	}
	for _, at := range []string{elsewhere, "::1"} {
		if conn, err := net.Dial("tcp", net.JoinHostPort(at, port)); err == nil {
			_ = conn.Close()
			c.failf("%s answers", at)
		}
	}
	here.stop()
	wide := p.start("--listen", "0.0.0.0:0")
	defer wide.stop()
	at := netip.MustParseAddrPort(elsewhere + ":" + wide.port()).String()
	for request, want := range map[string]string{
		"GET /v1/session HTTP/1.1\r\nHost: " + at + "\r\n\r\n":                          " 401 ",
		"GET /v1/session HTTP/1.1\r\nHost: evil.test\r\n\r\n":                           " 421 ",
		"CONNECT plain.good.test:443 HTTP/1.1\r\nHost: plain.good.test:443\r\n\r\n":     " 407 ",
		"GET http://plain.good.test/v1/items HTTP/1.1\r\nHost: plain.good.test\r\n\r\n": " 407 ",
	} {
		conn, err := net.Dial("tcp", at)
		c.must(err)
		_, _ = io.WriteString(conn, request)
		buf := make([]byte, 64)
		n, _ := io.ReadAtLeast(conn, buf, 16)
		if _ = conn.Close(); !strings.Contains(string(buf[:n]), want) {
			c.failf("%.20q from elsewhere: %q", request, buf[:n])
		}
	}
	if hits := c.hits("plain.good.test"); len(hits) != 0 {
		c.failf("the origin got %d requests", len(hits))
	}
}

// insides match what discloses the machine or the program.
var insides = regexp.MustCompile(`/(tmp|root|home|work|proc|etc|var)/|\.go:\d|goroutine|0x[0-9a-f]{6}|` +
	`93\.184\.|169\.254|\b10\.0\.0|attacks root|x509|sql|tls:|dial |QCANARY`)

func apiErrors(c *testCase) {
	api := c.origin("api.good.test")
	const q = "/v1/items?q=QCANARY"
	bearer := "Authorization: Bearer " + c.s.token
	authorized := c.authorization()
	for name, fail := range map[string]struct {
		want refusal
		ask  func(c *testCase) answer
	}{
		"not granted":  {hostNotAllowed, func(c *testCase) answer { return c.get("evil.test", "/QCANARY?QCANARY=1") }},
		"no operation": {operationNone, func(c *testCase) answer { return c.get("api.good.test", "/none?q=QCANARY") }},
		"query": {queryNotDeclared,
			func(c *testCase) answer { return c.get("api.good.test", "/v1/items?other=QCANARY") }},
		"malformed": {malformed, func(c *testCase) answer { return c.get("api.good.test", "/v1/%zz?QCANARY") }},
		"other authority": {otherAuthority,
			func(c *testCase) answer { return c.tun("api.good.test", head("GET", "QCANARY.test", "/v1/items")) }},
		"a version": {malformed.at(505), func(c *testCase) answer {
			return c.tun("api.good.test", "GET /v1/items HTTP/9.9\r\nHost: QCANARY\r\n\r\n")
		}},
		"upgrade": {upgradeUndeclared,
			func(c *testCase) answer {
				return c.get("api.good.test", q, "Connection: upgrade", "Upgrade: websocket")
			}},
		"no token": {noToken, func(c *testCase) answer {
			return c.fwd("GET http://api.good.test" + q + " HTTP/1.1\r\nHost: api.good.test\r\n\r\n")
		}},
		"scheme": {insecureScheme, func(c *testCase) answer {
			return c.fwd("GET https://api.good.test" + q + " HTTP/1.1\r\nHost: api.good.test\r\n" + authorized + "\r\n")
		}},
		"a body with a GET": {bodyUndeclared,
			func(c *testCase) answer { return c.get("api.good.test", q, "Content-Length: 7") }},
		"endpoint": {notFound,
			func(c *testCase) answer { c.rows++; return c.ask("GET", "/v1/none?QCANARY", "", bearer) }},
		"owner's": {ownerOnly,
			func(c *testCase) answer { c.rows++; return c.ask("GET", "/v1/audit?QCANARY", "", bearer) }},
		"coding": {unsafeEncoding, func(c *testCase) answer {
			api.plays(func(v *visit) { v.reply(200, "QCANARY", "Content-Encoding", "gzip") })
			return c.get("api.good.test", q)
		}},
		"charset": {unsafeCharset, func(c *testCase) answer {
			api.plays(func(v *visit) { v.reply(200, "QCANARY", "Content-Type", "text/plain; charset=utf-16") })
			return c.get("api.good.test", q)
		}},
		"garbage": {upstreamNotHTTP, func(c *testCase) answer {
			c.strays = true
			api.plays(func(v *visit) { v.send("QCANARY\r\n\r\n"); v.close = true })
			return c.get("api.good.test", q)
		}},
		"no name": {nameNotResolved, func(c *testCase) answer {
			on.names.answers(func(name string, _ bool) ([]netip.Addr, bool) { return nil, name == "basic.good.test" })
			return c.get("basic.good.test", "/v1/items?QCANARY") // which has no connection open
		}},
	} {
		c.each(name, func(d *testCase) {
			a := fail.ask(d)
			d.refused(name, a, fail.want)
			if told := insides.FindString(a.body + fmt.Sprint(a.header)); told != "" {
				d.failf("%q is told: %s", told, a.body)
			}
		})
	}
	api.plays(nil)
}
