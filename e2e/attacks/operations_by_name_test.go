package attacks

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/ALRubinger/aileron/audit"
)

// call runs an operation of the connector api by its name.
func (c *testCase) call(operation, args string) answer {
	return c.invoke(fmt.Sprintf(`{"connector_fqn":"github://attacks/api","tool":"api","operation":%q,"args":%s}`,
		operation, args))
}

func (c *testCase) invoke(invocation string) answer {
	c.rows++
	return c.ask("POST", "/v1/connector-operations/run", invocation, "Authorization: Bearer "+c.s.token,
		"Content-Type: application/json")
}

func apiOperations(c *testCase) {
	for name, r := range map[string]struct {
		operation, args string
		want            refusal
	}{
		"an operation that is not declared":     {"admin.get", `{}`, operationNone},
		"an operation of any method":            {"any", `{"id":"7"}`, argumentsInvalid.as("no single method")},
		"an argument that is no input":          {"items.list", `{"host":"evil.test"}`, argumentsInvalid.as("no such input")},
		"the name of a header":                  {"items.list", `{"Authorization":"Bearer x"}`, argumentsInvalid},
		"a value of another type":               {"items.list", `{"q":{"a":1}}`, argumentsInvalid},
		"an array of arguments":                 {"items.list", `["q"]`, argumentsInvalid.as("not an object")},
		"an argument twice":                     {"items.list", `{"q":"a","q":"b"}`, argumentsInvalid},
		"no number":                             {"items.list", `{"q":NaN}`, argumentsInvalid},
		"a variable of the path that is absent": {"items.get", `{}`, argumentsInvalid},
		"a path that climbs":                    {"items.get", `{"id":"../../admin"}`, argumentsInvalid},
		"a dot segment":                         {"items.get", `{"id":".."}`, argumentsInvalid},
		"a slash":                               {"items.get", `{"id":"7/comments"}`, argumentsInvalid},
		"an escaped slash":                      {"items.get", `{"id":"7%2f..%2fadmin"}`, argumentsInvalid},
		"a NUL in the path":                     {"items.get", `{"id":"7\u0000"}`, argumentsInvalid},
		"a line end in the path":                {"items.get", `{"id":"7\r\nX-Evil: 1"}`, argumentsInvalid},
	} {
		c.each(name, func(c *testCase) {
			c.refused(name, c.call(r.operation, r.args), r.want)
			c.untouched()
		})
	}
	for name, r := range map[string]struct {
		invocation string
		want       refusal
	}{
		"a connector that is not installed": {`{"connector_fqn":"github://evil/api","tool":"api","operation":"items.list"}`,
			operationNone},
		"a tool that is not declared": {`{"connector_fqn":"github://attacks/api","tool":"x","operation":"items.list"}`,
			operationNone},
		"another version": {`{"connector_fqn":"github://attacks/api@9.9.9","tool":"api","operation":"items.list"}`,
			operationNone},
		"a key that is unknown": {`{"url":"https://evil.test/"}`, argumentsInvalid},
		"two calls":             {`{} {}`, argumentsInvalid},
		"nothing":               {"", argumentsInvalid},
	} {
		c.each(name, func(c *testCase) {
			c.refused(name, c.invoke(r.invocation), r.want)
			c.untouched()
		})
	}
	for _, method := range []string{"GET", "PUT", "DELETE"} {
		c.each(method, func(c *testCase) {
			for _, route := range []string{"/v1/connector-operations/run", "/v1/sandbox-proxy/requests"} {
				for name, a := range c.doors(method, route, "Authorization: Bearer "+c.s.token) {
					c.refused(route+" "+name, a, methodNotAllowed)
				}
			}
			c.untouched()
		})
	}
	carriedRequests(c)
	c.each("a call that fits is served, without the credential", func(c *testCase) {
		c.origin("api.good.test").plays(func(v *visit) {
			v.reply(200, "you are "+v.credential(), "Content-Type", "text/plain")
		})
		a := c.call("items.list", `{"q":"a b"}`)
		c.is("the call", a, 200)
		if !strings.Contains(a.body, `"body":"you are ****`) {
			c.failf("the call returned %.200q, want the origin's body, redacted", a.body)
		}
		c.sentOnce("GET", url.Values{"q": {"a b"}})
		for _, row := range c.s.rows(c.after) {
			if row.Event == audit.EventProxyProxied && row.Source != audit.SourceConnectorShim {
				c.failf("O3: the row has the source %s", row.Source)
			}
		}
	})
}

// carry sends a request as the body of one to the API, as the operation items.list.
func (c *testCase) carry(method, url, more string) answer {
	c.rows++
	body := fmt.Sprintf(`{"connector_fqn":"github://attacks/api","tool":"api","operation":"items.list","method":%q,`+
		`"upstream_url":%q%s}`, method, url, more)
	return c.ask("POST", "/v1/sandbox-proxy/requests", body, "Authorization: Bearer "+c.s.token,
		"Content-Type: application/json")
}

// carriedRequests sends requests as bodies of others, that are no requests of the operation which they name.
func carriedRequests(c *testCase) {
	const items = "https://api.good.test/v1/items"
	for name, r := range map[string]struct {
		method, url, more string
		want              refusal
	}{
		"userinfo":                    {"GET", "https://api.good.test@evil.test/v1/items", "", malformed},
		"another host":                {"GET", "https://evil.test/v1/items", "", hostNotAllowed},
		"another port":                {"GET", "https://api.good.test:8443/v1/items", "", hostNotAllowed},
		"an address":                  {"GET", "https://127.0.0.1/v1/items", "", hostNotAllowed},
		"the metadata's":              {"GET", "http://169.254.169.254/latest/meta-data", "", hostNotAllowed},
		"the session's API":           {"GET", "http://aileron.internal/v1/audit", "", operationNone},
		"clear text":                  {"GET", "http://api.good.test:443/v1/items", "", operationNone.as("use https")},
		"another scheme":              {"GET", "file:///etc/passwd", "", malformed},
		"no scheme":                   {"GET", "//evil.test/v1/items", "", malformed},
		"dot segments":                {"GET", items + "/../admin", "", malformed},
		"escaped dots":                {"GET", items + "/%2e%2e/admin", "", malformed},
		"an escaped slash":            {"GET", items + "%2fadmin", "", malformed},
		"an undeclared query":         {"GET", items + "?api_key=x", "", queryNotDeclared},
		"another operation":           {"GET", items + "/7", "", operationNone},
		"a method that is overridden": {"DELETE", items, `,"headers":{"X-HTTP-Method-Override":"GET"}`, operationNone},
		"CONNECT":                     {"CONNECT", "https://api.good.test:443/v1/items", "", malformed},
		"a line end in the method":    {"GET /x HTTP/1.1\r\nX: ", items, "", malformed},
		"a line end in the URL":       {"GET", items + "\r\nX: 1", "", malformed},
		"a line end in a name":        {"GET", items, `,"headers":{"X\r\nY":"1"}`, malformed},
		"a line end in a value":       {"GET", items, `,"headers":{"X":"1\r\nHost: evil.test"}`, malformed},
		"a Host":                      {"GET", items, `,"headers":{"Host":"evil.test"}`, otherAuthority},
		"a length":                    {"GET", items, `,"headers":{"Content-Length":"44"}`, malformed},
		"chunks":                      {"GET", items, `,"headers":{"Transfer-Encoding":"chunked"}`, malformed},
		"an upgrade": {"GET", items, `,"headers":{"Connection":"upgrade","Upgrade":"websocket"}`,
			upgradeUndeclared},
		"a body on GET":  {"GET", items, `,"body_base64":"R0VUIC8gSFRUUC8xLjENCg0K"`, bodyUndeclared},
		"no base64":      {"GET", items, `,"body_base64":"%%%"`, argumentsInvalid},
		"a field twice":  {"GET", items, `,"headers":{"A":"1","A":"2"}`, argumentsInvalid},
		"a key twice":    {"GET", items, `,"upstream_url":"https://evil.test/"`, argumentsInvalid},
		"ten mebibytes":  {"GET", items, `,"body_base64":"` + strings.Repeat("A", 10<<20) + `"`, bodyTooLarge},
		"deep structure": {"GET", items, `,"headers":` + strings.Repeat("[", 5000), argumentsInvalid},
	} {
		c.each("carried: "+name, func(c *testCase) {
			c.refused(name, c.carry(r.method, r.url, r.more), r.want)
			c.untouched()
		})
	}
	c.each("a carried request that fits is served, and its own credentials are not", func(c *testCase) {
		c.origin("api.good.test").plays(func(v *visit) {
			v.reply(200, "you are "+v.credential(), "Content-Type", "text/plain")
		})
		a := c.carry("GET", "https://api.good.test/v1/items?q=a", `,"headers":{"Authorization":"Bearer mine","Cookie":"a=b",`+
			`"X-Forwarded-Host":"evil.test","Connection":"close, x-forwarded-host","Accept":"text/plain"}`)
		c.is("the request", a, 200)
		if !strings.Contains(a.body, `"body":"you are ****`) {
			c.failf("it returned %.200q, want the origin's body, redacted", a.body)
		}
		c.sentOnce("GET", url.Values{"q": {"a"}})
		for _, h := range c.hits("api.good.test") {
			if h.Header.Get("Cookie") != "" || h.Header.Get("X-Forwarded-Host") != "" ||
				strings.Contains(fmt.Sprint(h.Header["Authorization"]), "mine") {
				c.failf("O2: the origin got the box's own fields: %v", h.Header)
			}
		}
	})
}

// sentOnce fails the case unless the origin got one request, to /v1/items with these query values.
func (c *testCase) sentOnce(method string, query url.Values) {
	hits := c.hits("api.good.test")
	if len(hits) != 1 {
		c.failf("the origin got %d requests, want 1", len(hits))
		return
	}
	target, err := url.ParseRequestURI(hits[0].Target)
	if err != nil || hits[0].Method != method || target.Path != "/v1/items" || target.Query().Encode() != query.Encode() {
		c.failf("the origin got %s %q (%v), want %s /v1/items?%s", hits[0].Method, hits[0].Target, err, method,
			query.Encode())
	}
}

// argumentsInject puts lines, parameters and a credential's name into arguments.
func argumentsInject(c *testCase) {
	for name, args := range map[string]string{
		"the credential's name": `{"api_key":"x"}`, "a header's name": `{"authorization":"x"}`, "dots": `{"..":".."}`,
	} {
		c.each(name, func(c *testCase) {
			c.refused(name, c.call("items.list", args), argumentsInvalid.as("no such input"))
			c.untouched()
		})
	}
	c.each("lines and parameters in values", func(c *testCase) {
		c.is("the call", c.call("items.list", `{"q":"x\r\nX-Evil: 1","limit":"1&api_key=x#"}`), 200)
		c.sentOnce("GET", url.Values{"q": {"x\r\nX-Evil: 1"}, "limit": {"1&api_key=x#"}})
		for _, h := range c.hits("api.good.test") {
			if h.Header.Get("X-Evil") != "" {
				c.failf("the origin got a header field out of an argument")
			}
		}
	})
}

// calledRedirects redirects a call by name.
func calledRedirects(c *testCase) {
	for _, location := range []string{"https://evil.test/", "https://key.good.test/v1/items", "/admin",
		"https://api.good.test/v1/items?q=again"} {
		c.each(location, func(c *testCase) {
			c.origin("api.good.test").plays(func(v *visit) { v.reply(302, "", "Location", location) })
			a := c.call("items.list", `{}`)
			c.is("the call", a, 200)
			if !strings.Contains(a.body, `"upstream_status":302`) {
				c.failf("the call returned %.200q, want the redirect itself", a.body)
			}
			c.sentOnce("GET", nil)
			if n := len(c.hits("key.good.test")) + len(c.hits("evil.test")); n != 0 {
				c.failf("the redirect was followed, %d times", n)
			}
		})
	}
}

// hugeCalls sends calls that cost their reader much, to both endpoints.
func hugeCalls(c *testCase) {
	const named = `{"connector_fqn":"github://attacks/api","tool":"api","operation":"items.list",`
	keys := make([]string, 70_000)
	for i := range keys {
		keys[i] = fmt.Sprintf(`"k%d":1`, i)
	}
	for name, r := range map[string]struct {
		body string
		want refusal
	}{
		"100 MiB": {named + `"args":{"q":"` + strings.Repeat("x", 2<<20), bodyTooLarge},
		"depth":   {strings.Repeat(`{"args":`, 100_000), argumentsInvalid.as("nested more than 16 deep")},
		"lists":   {named + `"args":{"q":` + strings.Repeat("[", 500_000), argumentsInvalid.as("nested more than 16 deep")},
		"keys":    {named + `"args":{` + strings.Join(keys, ",") + `}}`, argumentsInvalid.as("no such input")},
		"keys that are one": {named + `"args":{` + strings.Repeat(`"q":"a",`, 50_000) + `"q":"b"}}`,
			argumentsInvalid.as("duplicate key")},
		"half of it": {named + `"args":{"q":"`, argumentsInvalid.as("ends too early")},
		"no UTF-8":   {named + `"args":{"q":"` + "\xff" + `"}}`, argumentsInvalid.as("not UTF-8")},
	} {
		for _, route := range []string{"/v1/connector-operations/run", "/v1/sandbox-proxy/requests"} {
			c.each(name+" at "+route, func(c *testCase) {
				length := len(r.body)
				if name == "100 MiB" {
					length = 100 << 20
				}
				want := r.want
				if route == "/v1/sandbox-proxy/requests" && want.says == "no such input" {
					want.says = ""
				}
				c.rows++
				raw := head("POST", c.s.addr, route, "Authorization: Bearer "+c.s.token,
					fmt.Sprintf("Content-Length: %d", length)) + r.body
				c.refused(name, c.say(c.dial(), raw, "POST")[0], want)
				c.untouched()
			})
		}
	}
	c.each("calls go on", func(c *testCase) { c.is("a call", c.call("items.list", `{"q":"a"}`), 200) })
}
