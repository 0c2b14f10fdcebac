package connectors

import (
	"encoding/json"
	"errors"
	"testing"
)

// An error of a source may name more than a script should see, and CONTRACT has no such field.
func TestAnUpdateIsPrintedWithoutItsInnerError(t *testing.T) {
	raw, err := json.Marshal(UpdateJSON{FQN: "github://acme/tracker", Err: errors.New("inner")})
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(raw, &got); err != nil {
		t.Fatal(err)
	}
	if _, there := got["Err"]; there || len(got) == 0 {
		t.Errorf("an update is printed as %s", raw)
	}
}
