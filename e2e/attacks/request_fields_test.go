package attacks

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/spec"
)

// fld: what a request carries besides its operation: fields, methods, query
// names.
func fld() category {
	return category{name: "FLD", cases: []attack{
		{id: "AUT-30", does: "fields by which proxies are steered do not arrive, and steer nothing here",
			run: func(c *testCase) {
				c.dropped("api.good.test", "X-Unix-Socket: /var/run/docker.sock", "X-Upstream-Https-Proxy: http://evil.test:3128",
					"X-Aileron-Upstream: evil.test",
					"X-Aileron-Host: evil.test", "X-Proxy-Url: http://evil.test", "X-Envoy-Original-Dst-Host: evil.test",
					"X-Smokescreen-Role: admin")
			}},
		{id: "HST-12", does: "fields by which servers read another host do not arrive", run: func(c *testCase) {
			c.dropped("api.good.test", "X-Forwarded-Host: evil.test", "X-Host: evil.test", "X-Original-Host: evil.test",
				"Forwarded: host=evil.test", "X-Forwarded-Server: evil.test",
				"X-HTTP-Host-Override: evil.test", "X-Real-Host: evil.test", "X-Forwarded_Host: evil.test",
				"x.forwarded.host: evil.test")
		}},
		{id: "CRD-15", does: "a session is who comes by its door, and not who it claims to be", run: fldOtherSession},
		{id: "FLD-01", does: "fields by which a server acts for someone else do not arrive", run: func(c *testCase) {
			for name, fields := range map[string][]string{
				"another user": {"Sudo: root", "Impersonate-User: admin", "Impersonate-Group: system:masters",
					"Impersonate-Extra-Scopes: all", "Remote-User: admin", "X-Remote-User: admin",
					"X-WebAuth-User: admin", "X-On-Behalf-Of: admin", "From: admin@good.test", "X-Ms-Client-Principal: x"},
				"a client certificate": {"Client-Cert: :AAAA:", "X-SSL-Client-Cert: AAAA", "X-SSL-Client-Verify: SUCCESS",
					"X-Client-Cert: AAAA", "X-Forwarded-Client-Cert: Hash=1", "SSL-Client-S-DN: CN=admin"},
				"an address": {"Client-Ip: 127.0.0.1", "X-Client-Ip: 127.0.0.1", "True-Client-Ip: 127.0.0.1",
					"X-Real-Ip: 127.0.0.1", "Cf-Connecting-Ip: 127.0.0.1", "Via: 1.1 evil.test", "X-Originating-Ip: 127.0.0.1"},
				"a page": {"Origin: https://admin.good.test", "Referer: https://admin.good.test/",
					"X-Requested-With: XMLHttpRequest", "Baggage: tenant=other"},
				"spellings": {"SUDO: root", "sudo: root", "X_Forwarded_For: 127.0.0.1", "Remote_User: admin",
					"remote.user: admin", "Sudo_: root"},
			} {
				c.each(name, func(c *testCase) { c.dropped("api.good.test", fields...) })
			}
		}},
		{id: "FLD-02", does: "a WebSocket's handshake is no way around it", run: func(c *testCase) {
			c.origin("api.good.test").plays(func(v *visit) { v.accept(); v.close = true })
			c.relayed("the handshake", c.get("api.good.test", "/v1/live", "Connection: Upgrade", "Upgrade: websocket",
				"Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==",
				"Sudo: FIELDCANARY", "Origin: https://FIELDCANARY", "X-Forwarded-For: FIELDCANARY", "Cookie: sid=FIELDCANARY"),
				http.StatusSwitchingProtocols)
			c.absent("api.good.test", "FIELDCANARY")
			c.names("cookie", "origin", "sudo", "x-forwarded-for")
		}},
		{id: "FLD-03", does: "an operation of any method takes registered ones only", run: func(c *testCase) {
			for method, why := range map[string]string{"TRACE": "never forwarded", "TRACK": "never forwarded",
				"PRI": "never forwarded", "trace": "never forwarded", "FOO": "is not in the IANA HTTP Method Registry",
				"PURGE": "is not in the IANA HTTP Method Registry",
				"GETS":  "is not in the IANA HTTP Method Registry", "POST_": "is not in the IANA HTTP Method Registry",
				"*": "is not in the IANA HTTP Method Registry", "get": `use "GET"`, "Get": `use "GET"`} {
				c.each(method, func(c *testCase) {
					c.refused(method, c.tun("api.good.test", head(method, "api.good.test", "/v1/any/7")), operationNone.as(why))
					c.untouched()
				})
			}
			c.each("CONNECT", func(c *testCase) { // which is no request of a tunnel
				c.refused("CONNECT", c.tun("api.good.test", head("CONNECT", "api.good.test", "/v1/any/7")), malformed)
				c.untouched()
			})
			c.each("PUT", func(c *testCase) {
				c.permits = func(h hit) bool { return h.Target == "/v1/any/7" && h.Method == "PUT" }
				c.is("PUT", c.tun("api.good.test", head("PUT", "api.good.test", "/v1/any/7")), 200)
			})
		}},
		{id: "FLD-04", does: "inputs of the path and the body are no query names", run: func(c *testCase) {
			for query, why := range map[string]string{"id=4": "an input of the path", "title=x": "an input of the body",
				"notify=1&id=4": "an input of the path", "%69d=4": "an input of the path",
				"ID=4": "does not declare", "id[]=4": "does not declare", "notify=1&title": "an input of the body"} {
				c.each(query, func(c *testCase) {
					c.refused("?"+query, c.post("api.good.test", "/v1/any/7?"+query, "x"), queryNotDeclared.as(why))
					c.untouched()
				})
			}
			c.each("notify=1", func(c *testCase) {
				c.permits = func(h hit) bool { return h.Target == "/v1/any/7?notify=1" }
				c.is("the declared one", c.post("api.good.test", "/v1/any/7?notify=1", "x"), 200)
			})
		}},
		{id: "FLD-05", does: "an operation without a credential gets what the client sends, but for the fields of the hop",
			run: func(c *testCase) {
				c.is("the request", c.get("plain.good.test", "/v1/items", "Sudo: root", "Authorization: Bearer its-own",
					"Connection: x-nominated", "X-Nominated: HOPONLY",
					"Proxy-Authorization: Basic HOPONLY", "Proxy-Connection: HOPONLY", "Keep-Alive: HOPONLY"), 200)
				c.absent("plain.good.test", "HOPONLY", "Proxy-", "Keep-Alive", "X-Nominated")
				for _, h := range c.hits("plain.good.test") {
					if h.Header.Get("Sudo") != "root" || h.Header.Get("Authorization") != "Bearer its-own" {
						c.failf("the origin got %v", h.Header)
					}
				}
			}},
		{id: "SPC-03", does: "a path or a method that can be read in two ways is in no connector", run: fldDeclared},
	}}
}

// dropped asks with fields and fails the case unless the request arrives
// without each of them, and the row names them.
func (c *testCase) dropped(host string, fields ...string) {
	c.is("the request", c.get(host, "/v1/items", append(fields, "Accept: text/kept")...), 200)
	hits := c.hits(host)
	if len(hits) != 1 || hits[0].Header.Get("Accept") != "text/kept" {
		c.failf("%s got %d requests, and not what is accepted", host, len(hits))
		return
	}
	var names []string
	for _, field := range fields {
		name, value, _ := strings.Cut(field, ": ")
		for got := range hits[0].Header {
			if strings.EqualFold(got, name) {
				c.failf("%s got the field %s", host, got)
			}
		}
		if value != "x" && strings.Contains(string(hits[0].Raw), ": "+value) {
			c.failf("%s got the value of %s", host, name)
		}
		names = append(names, strings.ToLower(name))
	}
	c.names(names...)
}

// names fails the case unless each of its rows names these fields as dropped.
func (c *testCase) names(dropped ...string) {
	slices.Sort(dropped)
	want := fmt.Sprint(slices.Compact(dropped))
	rows := c.settledRows()
	for _, r := range rows {
		if got := fmt.Sprint(r.Fields["dropped_headers"]); got != want {
			c.failf("the row of %s names %s, want %s", r.Event, got, want)
		}
	}
	if len(rows) == 0 {
		c.failf("there is no row")
	}
}

// fldOtherSession claims to be of another session, in every place where a
// name could stand.
func fldOtherSession(c *testCase) {
	other := newWorld(c.t, fixture{connectors: []string{"key"}})
	defer other.stop()
	const id = "of-another-session"
	c.each("fields", func(c *testCase) {
		c.dropped("api.good.test", "X-Aileron-Session: "+id, "X-Aileron-Session-Id: "+id, "Aileron-Session: "+id,
			"Aileron-Session-Id: "+id, "X-Session-Id: "+id)
		c.ownRows(id)
	})
	c.each("a body", func(c *testCase) {
		c.is("the request", c.post("api.good.test", "/v1/items", `{"AILERON_SESSION_ID":"`+id+`"}`,
			"Content-Type: application/json"), 200)
		c.ownRows(id)
	})
	rows, err := other.log.List(c.t.Context(), audit.Filter{})
	c.must(err)
	if len(rows) > 0 {
		c.failf("the other session has %d rows", len(rows))
	}
}

// ownRows fails the case unless its rows are of one session, which is not
// id, and use this session's binding.
func (c *testCase) ownRows(id string) {
	rows := c.settledRows()
	for _, r := range rows {
		if r.SessionID == "" || r.SessionID == id || r.SessionID != rows[0].SessionID || r.Binding != "bearer/api/test" {
			c.failf("a row is of the session %q with the binding %q", r.SessionID, r.Binding)
		}
	}
}

// fldDeclared loads connectors that differ from an honest one in a path or a
// method; each must be refused at its place.
func fldDeclared(c *testCase) {
	refused := func(place, old, changed string) {
		manifest, description := draw(nil).files()
		text := strings.Replace(string(description), old, changed, 1)
		if text == string(description) {
			c.t.Fatalf("%s is not in %s", old, description)
		}
		_, err := spec.Load(manifest, []byte(text))
		if !slices.ContainsFunc(spec.Diagnostics(err),
			func(f *spec.Diagnostic) bool { return f.Path == "tools[0].operations[0]."+place }) {
			c.failf("%s: %v, want a fault at its %s", changed, err, place)
		}
	}
	for _, path := range []string{"..", "/a/../b", "//a", "/a%2fb", "/a?x=1", "/a#f", "/a b", "/{a}{b}", "/{..}", "",
		"/{a", "/a}", "/{}", "/a;b", "/{a...}/b", `/a\\b`} {
		refused("path", `"path":"/v1/items"`, `"path":"`+path+`"`)
	}
	for _, method := range []string{"get", "CONNECT", "TRACE", "FOO", "GET,POST", "TRACK", "PRI", "Get", "trace", "GET ",
		"", "**"} {
		refused("method", `"method":"GET"`, `"method":"`+method+`"`)
	}
	for _, field := range []string{"*", "x-*", "sudo", "impersonate-*", "cookie", "x-forwarded-*", "host", "authorization",
		"x-http-method-override", "a b", ""} {
		refused("headers[0]", `"method":"GET"`, `"method":"GET","headers":["`+field+`"]`)
	}
}
