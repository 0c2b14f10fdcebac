package proxy

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/spec"
)

// A program in the sandbox finds how to call each operation, and nothing of a binding but whether there is one.
func TestASessionDescribesItsInputs(t *testing.T) {
	w := newCalls(t, func(*Config) {}, hello)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+w.addr+"/v1/session", nil)
	must(t, err)
	req.Header.Set("Authorization", "Bearer "+testToken)
	res, err := http.DefaultTransport.RoundTrip(req)
	must(t, err)
	defer res.Body.Close()
	var d Description
	must(t, json.NewDecoder(res.Body).Decode(&d))
	want := []InputDescription{{Name: "id", Type: "string", In: "path", Required: true},
		{Name: "q", Type: "string", In: "query"}, {Name: "state", Type: "string", In: "query", Values: []string{"open"}}}
	if got := d.Operations[0]; got.Operation != "get" || !reflect.DeepEqual(got.Inputs, want) || got.InputsOmitted != 0 {
		t.Errorf("it is described as %+v", got)
	}
	if c := d.Connectors; len(c) != 1 || c[0].FQN != "github://acme/calls" || c[0].Version != "1.0.0" {
		t.Errorf("the connectors are %+v", c)
	}
}

// A session of very many operations has a description of a bounded size.
func TestADescriptionIsBounded(t *testing.T) {
	var operations []string
	for i := range 300 {
		inputs := make([]string, 50)
		for j := range inputs {
			inputs[j] = fmt.Sprintf(`{"name":"i%d"}`, j)
		}
		operations = append(operations, fmt.Sprintf(`{"name":"o%d","method":"GET","path":"/%d",`+
			`"hosts":["api.good.example"],"inputs":[%s]}`, i, i, strings.Join(inputs, ",")))
	}
	manifest := strings.Replace(callsManifest, "[capabilities.credential]\nkind = \"bearer\"\n", "", 1)
	c, err := spec.Load([]byte(manifest), []byte(`{"schema_version":"aileron.connector.v1",`+
		`"connector":{"fqn":"github://acme/calls","version":"1.0.0"},"tools":[{"name":"calls","operations":[`+
		strings.Join(operations, ",")+`]}]}`))
	must(t, err)
	index, err := spec.NewIndex([]*spec.Connector{c})
	must(t, err)
	w := newWorldWith(t, false, func(*Config) {}, hello)
	w.plane.SetGrants(&Grants{Index: index})
	listed, omitted := 0, 0
	for _, op := range w.plane.Describe().Operations {
		listed, omitted = listed+len(op.Inputs), omitted+op.InputsOmitted
	}
	if listed != maxDescribedInputs || omitted != 300*50-maxDescribedInputs {
		t.Errorf("it lists %d inputs and omits %d", listed, omitted)
	}
}
