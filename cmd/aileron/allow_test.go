package main

import (
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/audit"
)

// A sandbox chooses the path of its request: what a person allows is that path and no pattern.
func TestThePathOfARowDoesNotBecomeAPattern(t *testing.T) {
	row := audit.Row{Scheme: "https", Method: "GET", Host: "api.example", Port: 443, Path: "/v1/{rest...}",
		Reason: "host_not_allowed"}
	if _, err := (&allowOptions{}).forRow(row, nil); err == nil || !strings.Contains(err.Error(), "the path has braces") {
		t.Errorf("got %v", err)
	}
	row.Path = "/v1/items"
	made, err := (&allowOptions{}).forRow(row, nil)
	if err != nil || len(made.Operations) != 1 || made.Operations[0].Path != "/v1/items" || made.Credential != nil {
		t.Errorf("%+v, %v", made, err)
	}
}
