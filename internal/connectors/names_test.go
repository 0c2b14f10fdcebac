package connectors

import (
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/internal/failure"
	"github.com/ALRubinger/aileron/spec"
)

// A credential must not go to the connector that a person did not mean.
func TestAShortNameOfTwoConnectorsIsNeither(t *testing.T) {
	n := &Names{Installed: []spec.FQN{"github://acme/tracker", "github://acme/notes", "hub://other/tracker"}, read: true}
	fqn, err := n.Resolve("tracker")
	if err == nil || fqn != "" || failure.Describe(err).Code != 2 ||
		!strings.Contains(err.Error(), "tracker can be github://acme/tracker or hub://other/tracker") {
		t.Errorf("tracker is %q, %v", fqn, err)
	}
	if fqn, err := n.Resolve("notes"); err != nil || fqn != "github://acme/notes" {
		t.Errorf("notes is %q, %v", fqn, err)
	}
}
