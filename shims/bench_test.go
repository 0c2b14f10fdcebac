package shims_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/shims"
	"github.com/ALRubinger/aileron/spec"
)

// many are 200 connectors with 50 operations each.
func many(t testing.TB) shims.Set {
	var set shims.Set
	for i := range 200 {
		c := *load(t, "tracker")
		c.FQN = spec.FQN(fmt.Sprintf("github://acme/aileron-connector-number%03d", i))
		tool := spec.Tool{Name: fmt.Sprintf("number%03d", i), Description: "One of many"}
		for n := range 50 {
			op := *c.Tools[0].Operations[0]
			op.Name = fmt.Sprintf("things%02d.get", n)
			tool.Operations = append(tool.Operations, &op)
		}
		c.Tools = []spec.Tool{tool}
		set.Connectors = append(set.Connectors, &c)
	}
	return set
}

// An agent reads the file before its first request, however much is installed.
func TestTheToolsFileOfManyIsShort(t *testing.T) {
	set := many(t)
	text := string(set.ToolsFile())
	if len(text) > 32<<10 {
		t.Errorf("it has %d bytes for 200 connectors with 10 000 operations, more than 32 KiB", len(text))
	}
	for _, name := range set.ToolNames() {
		if !strings.Contains("\n"+text, "\n"+name+"  ") {
			t.Errorf("it has no line for %s", name)
		}
	}
	if !strings.Contains(text, "--help") || !strings.Contains(text, "Hosts: ") {
		t.Errorf("the rules, or the hosts, are missing:\n%s", text)
	}
}

func BenchmarkManyCommands(b *testing.B) {
	set := many(b)
	for b.Loop() {
		n := 0
		for _, c := range set.Commands() {
			n += len(c.Script)
		}
		b.SetBytes(int64(n + len(set.ToolsFile())))
	}
}
