package attacks

import (
	"fmt"
	"net/url"
	"os"
	"strings"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/proxy"
	"github.com/ALRubinger/aileron/spec"
	"github.com/ALRubinger/aileron/spec/action"
)

// pinnedHash is the content hash of the version of the connector api that actions pin. The wire uses another one.
const pinnedHash = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

// actionFile returns the file of an action that pins the connector api.
func actionFile(name, input, capability, operation, args string) []byte {
	return fmt.Appendf(nil, `+++
[action]
name = %q
version = "1.0.0"
description = "An attack"

[[inputs]]
name = %q
type = "string"
required = true

[[requires.connectors]]
name = "github://attacks/api"
version = "0.9.0"
hash = %q
capabilities = [%q]

[[execute]]
tool = "api"
operation = %q
args = { %s = "${args.%s}" }
+++
`, name, input, pinnedHash, capability, operation, args, input)
}

// withActions adds actions to a world. What they pin has the operation old, which the wire's version has not, and
// items.mine, whose path is one of items.get too.
func (c *testCase) withActions() {
	read := func(file string, changes ...string) []byte {
		data, err := os.ReadFile("testdata/connectors/api/" + file)
		c.must(err)
		return []byte(strings.NewReplacer(append(changes, "1.0.0", "0.9.0")...).Replace(string(data)))
	}
	pinned, err := spec.Load(read("manifest.toml"), read("aileron.connector.v1.json",
		`"echo.get", "method": "GET", "path": "/v1/echo"`, `"old", "method": "GET", "path": "/v1/old/{id}"`,
		`"items.delete", "method": "DELETE", "path": "/v1/items/{id}"`,
		`"items.mine", "method": "GET", "path": "/v1/items/mine"`))
	c.must(err)
	pinned.Hash = pinnedHash
	index, err := spec.NewIndex([]*spec.Connector{pinned})
	c.must(err)
	w := c.s.plane
	g := &proxy.Grants{Index: w.grants.Index, Bound: w.grants.Bound, Scrub: w.grants.Scrub,
		Pinned:  map[string]*proxy.Grants{pinnedHash: {Index: index, Bound: w.grants.Bound}},
		Actions: map[string]proxy.Action{}}
	for _, file := range [][]byte{
		actionFile("read-item", "id", "items.get", "items.get", "id"),
		actionFile("list-items", "text", "items.list", "items.list", "q"),
		actionFile("read-old", "id", "old", "old", "id"),
		actionFile("greedy", "id", "items.get", "old", "id"),
		actionFile("foreign", "id", "items.get", "admin.get", "id"),
		actionFile("grown", "id", "admin.get", "admin.get", "id"),
	} {
		a, err := action.Parse(file)
		c.must(err)
		linked, err := a.Link(func(action.Pin) (*spec.Connector, error) { return pinned, nil })
		g.Actions[a.Name] = proxy.Action{Linked: linked, Fault: err, Reason: proxy.ReasonActionUnusable}
	}
	w.plane.SetGrants(g)
}

// act calls an action.
func (c *testCase) act(call string) answer {
	c.rows++
	return c.ask("POST", "/v1/actions/run", call, "Authorization: Bearer "+c.s.token, "Content-Type: application/json")
}

// namedActions calls actions with what is none of their arguments, or leads out of one of their two boundaries.
func namedActions(c *testCase) {
	c.withActions()
	c.each("a value stays a value", func(c *testCase) {
		value := "a&limit=9#\r\nX-Evil: 1 ${args.text} ${HOME}\",\"b\":\""
		c.is("the call", c.act(fmt.Sprintf(`{"action":"list-items","args":{"text":%q}}`, value)), 200)
		c.sentOnce("GET", url.Values{"q": {value}})
	})
	c.each("what an action pins is not for the wire", func(c *testCase) {
		c.permits = func(h hit) bool { return h.origin == "api.good.test:443" && h.Method+h.Target == "GET/v1/old/7" }
		c.is("the call", c.act(`{"action":"read-old","args":{"id":"7"}}`), 200)
		if n := len(c.hits("api.good.test")); n != 1 {
			c.failf("the origin got %d requests, want 1", n)
		}
		for _, row := range c.s.rows(c.after) {
			if row.Event == audit.EventProxyProxied && (row.ConnectorVersion != "0.9.0" || row.Fields["action"] != "read-old") {
				c.failf("O3: the row has the version %s and the fields %v", row.ConnectorVersion, row.Fields)
			}
		}
		c.refused("on the wire", c.get("api.good.test", "/v1/old/7"), operationNone)
		c.refused("by name", c.call("old", `{"id":"7"}`), operationNone)
	})
}
