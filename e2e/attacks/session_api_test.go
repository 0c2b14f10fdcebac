package attacks

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/netip"
	"regexp"
	"strings"

	proxyapi "github.com/ALRubinger/aileron/proxy/api"
)

// api: the session's own endpoints, asked by who may not.
func api() category {
	return category{name: "API", cases: join(written("api"), []attack{
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
		{id: "API-07", does: "a session's token tells and stops nothing of another session", run: func(c *testCase) {
			other := newWorld(c.t, fixture{connectors: []string{"alt"}})
			defer other.stop()
			theirs := proxyapi.Describe(other.plane).ID
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
						!strings.Contains(a.body, proxyapi.Describe(c.s.plane.plane).ID) {
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
		{id: "API-10", does: "the session listens where it was told to, and there it wants the token", run: apiListens},
		{id: "API-15", does: "a call of an action stays within the action and the connector that it pins", f: &fixture{},
			run: namedActions},
	})}
}

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
