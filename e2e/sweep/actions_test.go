package sweep

import (
	"encoding/json"
	"fmt"

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
	p.must("action", "remove", "sweeping")
	p.must("action", "add", file, "--yes")
}
