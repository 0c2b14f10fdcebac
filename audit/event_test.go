package audit

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
)

// Filters take events, sources and decisions from the tables; reviewers look them up in the manual.
func TestEveryConstantHasARowInItsTableAndInTheManual(t *testing.T) {
	rows := map[string]map[string]string{"Event": {}, "Source": {}, "Decision": {}}
	for _, e := range eventTable {
		rows["Event"][string(e.event)] = e.meaning
	}
	for _, s := range sourceTable {
		rows["Source"][string(s.source)] = s.meaning
	}
	for _, d := range decisionTable {
		rows["Decision"][string(d.decision)] = d.meaning
	}
	manual := must.Get(os.ReadFile("../docs/audit.md"))(t)
	for kind, values := range constants(t, "event.go", "internal/chain/events.go") {
		for _, value := range values {
			meaning, listed := rows[kind][value]
			if !listed {
				t.Errorf("the %s %s has no row in its table", strings.ToLower(kind), value)
			}
			if line := fmt.Sprintf("\n| `%s` | %s |\n", value, meaning); !strings.Contains(string(manual), line) {
				t.Errorf("docs/audit.md has no line %q", strings.TrimSpace(line))
			}
		}
		if len(values) != len(rows[kind]) {
			t.Errorf("there are %d constants of %s, and its table has %d rows", len(values), kind, len(rows[kind]))
		}
	}
}

// constants returns the values of the typed constants of files, by type.
func constants(t *testing.T, names ...string) map[string][]string {
	t.Helper()
	found := map[string][]string{}
	visit := func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || spec.Type == nil || len(spec.Values) != 1 {
			return true
		}
		kind, named := spec.Type.(*ast.Ident)
		literal, plain := spec.Values[0].(*ast.BasicLit)
		if named && plain {
			value := must.Get(strconv.Unquote(literal.Value))(t)
			found[kind.Name] = append(found[kind.Name], value)
		}
		return true
	}
	for _, name := range names {
		file := must.Get(parser.ParseFile(token.NewFileSet(), name, nil, 0))(t)
		ast.Inspect(file, visit)
	}
	return found
}

func TestEveryChangeHasThreeEvents(t *testing.T) {
	manual := must.Get(os.ReadFile("../docs/audit.md"))(t)
	for _, c := range Changes() {
		if c.Done() == "" || !IsEvent(c.Done()) || !IsEvent(c.Started()) || !IsEvent(c.Failed()) {
			t.Errorf("%s: started %q, done %q, failed %q", c, c.Started(), c.Done(), c.Failed())
		}
		if !strings.Contains(string(manual), fmt.Sprintf("| `%s` | `%s` |\n", c.Started(), c.Done())) {
			t.Errorf("docs/audit.md does not name the intent and the outcome of %s", c)
		}
	}
	if c := Change("connector.polish"); c.Done() != "" {
		t.Errorf("an unknown change has the event %q", c.Done())
	}
}
