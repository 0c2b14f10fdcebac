package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/internal/hostfiles"
	"github.com/ALRubinger/aileron/internal/report"
)

func TestNamesThatAnAgentChoosesDisplaceNoOtherInTheReport(t *testing.T) {
	var changes []hostfiles.Change
	for i := range 100 {
		changes = append(changes, hostfiles.Change{Path: fmt.Sprintf(".a/%d/.envrc", i), After: "x"})
	}
	changes = append(changes, hostfiles.Change{Path: ".envrc", After: "x"},
		hostfiles.Change{Path: ".git/config", After: "x"},
		hostfiles.Change{Path: "/repo/.git/hooks/x", After: "x"})
	text := strings.Join(report.HostFileLines(changes), "\n")
	for _, path := range []string{".envrc is", ".git/config is", "/repo/.git/hooks/x is", "and 91 more"} {
		if !strings.Contains("\n"+text, "\n"+path) {
			t.Errorf("the report does not name %s:\n%s", path, text)
		}
	}
}
