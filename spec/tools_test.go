package spec

import (
	"strings"
	"testing"
)

func TestOneCommandHasOneOwner(t *testing.T) {
	one, two := connector(t, "hub://a/one", "GET a.example/x"), connector(t, "hub://a/two", "GET b.example/x")
	err := ToolConflict([]*Connector{one, two})
	if err == nil || !strings.Contains(err.Error(), "hub://a/one") || !strings.Contains(err.Error(), "hub://a/two") {
		t.Errorf("two connectors with the command tool: %v, want an error that names both", err)
	}
	if err := ToolConflict([]*Connector{one}, "Tool"); err == nil {
		t.Error("a connector takes the agent's command")
	}
	if err := ToolConflict([]*Connector{one}, "agent"); err != nil {
		t.Error(err)
	}
}
