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
	return category{name: "FLD", cases: join(written("fields"), []attack{
		{id: "CRD-15", does: "a session is who comes by its door, and not who it claims to be", run: fldOtherSession},
		{id: "FLD-02", does: "a WebSocket's handshake is no way around it", run: func(c *testCase) {
			c.origin("api.good.test").plays(func(v *visit) { v.accept(); v.close = true })
			c.relayed("the handshake", c.get("api.good.test", "/v1/live", "Connection: Upgrade", "Upgrade: websocket",
				"Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==",
				"Sudo: FIELDCANARY", "Origin: https://FIELDCANARY", "X-Forwarded-For: FIELDCANARY", "Cookie: sid=FIELDCANARY"),
				http.StatusSwitchingProtocols)
			c.absent("api.good.test", "FIELDCANARY")
			c.names("cookie", "origin", "sudo", "x-forwarded-for")
		}},
		{id: "SPC-03", does: "a path or a method that can be read in two ways is in no connector", run: fldDeclared},
	})}
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
