package catalog

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
)

// The manual has a row for each entry, made of its specification.
func TestTheManualHasTheCatalogue(t *testing.T) {
	page := must.Get(os.ReadFile("../../docs/connectors.md"))(t)
	for _, e := range List() {
		if row := rowOf(e); !strings.Contains(string(page), "\n"+row+"\n") {
			t.Errorf("docs/connectors.md does not have this row:\n%s", row)
		}
	}
}

// rowOf returns the row of an entry in the manual: its name, its hosts, the
// beginnings of its operations' names, and the kind of its secret.
func rowOf(e Entry) string {
	var names, families []string
	for _, h := range e.Connector.Manifest.Hosts {
		names = append(names, "`"+strings.TrimSuffix(h.String(), ":443")+"`")
	}
	for _, op := range e.Connector.Tools[0].Operations {
		parts := strings.Split(op.Name, ".")
		keep := 1
		if parts[0] == "git" {
			keep = 2 // fetches and pushes are not the same thing
		}
		if family := strings.Join(parts[:min(keep, len(parts))], "."); !slices.Contains(families, family) {
			families = append(families, family)
		}
	}
	secret := "none"
	if need := e.Connector.Credential(); need != nil {
		secret = string(need.Kind)
	}
	return fmt.Sprintf("| `%s` | %s | %s | %s |", e.Name, strings.Join(names, " "), strings.Join(families, ", "), secret)
}
