package connectors

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
)

// An error of a source may name more than a script should see, and CONTRACT has no such field.
func TestAnUpdateIsPrintedWithoutItsInnerError(t *testing.T) {
	raw := must.Get(json.Marshal(UpdateJSON{FQN: "github://acme/tracker", Err: errors.New("inner")}))(t)
	var got map[string]any
	must.Do(t, json.Unmarshal(raw, &got))
	if _, there := got["Err"]; there || len(got) == 0 {
		t.Errorf("an update is printed as %s", raw)
	}
}
