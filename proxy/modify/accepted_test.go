package modify

import (
	"os"
	"regexp"
	"slices"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
)

func TestTheManualListsTheAcceptedFields(t *testing.T) {
	manual, err := os.ReadFile("../../docs/connectors.md")
	must.Do(t, err)
	for _, g := range acceptedFields {
		row := regexp.MustCompile(`(?m)^\| ` + g.what + ` \| ([^|]*) \|`).FindStringSubmatch(string(manual))
		if row == nil {
			t.Errorf("docs/connectors.md has no row of the %s fields", g.what)
			continue
		}
		listed := regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(row[1], -1)
		var names []string
		for _, m := range listed {
			names = append(names, m[1])
		}
		if !slices.Equal(names, g.names) {
			t.Errorf("docs/connectors.md lists %q as %s, want %q", names, g.what, g.names)
		}
	}
}
