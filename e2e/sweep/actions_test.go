package sweep

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/ALRubinger/aileron/e2e/must"
)

// act adds an action, runs it with a value that no output may have, removes it, and adds it for interrupt.
func (p *person) act() {
	p.t.Helper()
	var shown struct{ Hash string }
	said := p.must("connector", "show", fqn("bearer"), "--json")
	must.Do(p.t, json.Unmarshal(said.out.Bytes(), &shown))
	file := p.give("sweeping.md", fmt.Sprintf(`+++
[action]
name = "sweeping"
version = "1.0.0"
description = "Call the origin of the sweep"
[[inputs]]
name = "id"
required = true
[[requires.connectors]]
name = %q
version = "1.0.0"
hash = %q
capabilities = ["forms"]
[[execute]]
tool = "bearer-tool"
operation = "forms"
args = { id = "${args.id}" }
+++
`, fqn("bearer"), shown.Hash))
	p.must("action", "add", file, "--yes")
	for _, verb := range [][]string{{"action", "list"}, {"action", "show", "sweeping"}} {
		p.must(verb...)
		p.must(append(verb, "--json")...)
	}
	args := `{"id": "` + p.canary.text("a request body") + `"}`
	p.refused("", append([]string{"action", "run", "sweeping", "--args", args}, p.reach()...)...)
	p.refused("", append([]string{"action", "run", "sweeping", "--args", args, "--json"}, p.reach()...)...)
	p.mcp()
	p.must("action", "remove", "sweeping")
	p.must("action", "add", file, "--yes")
}

// mcp calls operations as a client of MCP does, also with what is refused, and has responses echo credentials.
func (p *person) mcp() {
	p.t.Helper()
	body := p.canary.text("a request body")
	calls := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},` +
		`"clientInfo":{"name":"sweep","version":"1"}}}` + "\n" + body + "\n"
	for i, call := range []string{`"bearer-tool.forms","arguments":{}`,
		`"bearer-tool.forms","arguments":{"id":"` + body + `"}`, `"bearer-tool.cut"`,
		`"read_more","arguments":{"id":"` + body + `","offset":0}`, `"no.such.tool"`} {
		calls += fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%s}}`, i+2, call) + "\n"
	}
	said := p.feed(calls, append([]string{"mcp"}, p.reach()...)...)
	said.bodies = true
	if strings.Contains(said.out.String(), body) {
		p.t.Error("a response repeats what the call had")
	}
	if n := strings.Count(said.out.String(), `"id":`); n != 7 {
		p.t.Errorf("mcp wrote %d responses, want 7:\n%s%s", n, said.out.String(), said.err.String())
	}
}
