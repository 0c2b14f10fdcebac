package attacks

import (
	"fmt"
	"net/url"
	"strings"
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

// carry sends a request as the body of one to the API, as the operation items.list.
func (c *testCase) carry(method, url, more string) answer {
	c.rows++
	body := fmt.Sprintf(`{"connector_fqn":"github://attacks/api","tool":"api","operation":"items.list","method":%q,`+
		`"upstream_url":%q%s}`, method, url, more)
	return c.ask("POST", "/v1/sandbox-proxy/requests", body, "Authorization: Bearer "+c.s.token,
		"Content-Type: application/json")
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
