package proxy

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/spec"
)

// description is what the tests ask of the response to GET /v1/session.
type description struct {
	Connectors []struct{ FQN, Version string }
	Operations []struct {
		Operation string
		Inputs    json.RawMessage
		Omitted   int `json:"inputs_omitted"`
	}
	Actions []struct {
		Name   string
		Inputs []struct{ Name string }
	}
}

func (w *world) describe() (d description) {
	w.t.Helper()
	req := must.Get(http.NewRequestWithContext(w.t.Context(), http.MethodGet, "http://"+w.addr+"/v1/session", nil))(w.t)
	req.Header.Set("Authorization", "Bearer "+testToken)
	res := must.Get(http.DefaultTransport.RoundTrip(req))(w.t)
	defer res.Body.Close()
	must.Do(w.t, json.NewDecoder(res.Body).Decode(&d))
	return d
}

// A program in the sandbox finds how to call each operation, and nothing of a binding but whether there is one.
func TestASessionDescribesItsInputs(t *testing.T) {
	w := newCalls(t, func(*Config) {}, hello)
	d := w.describe()
	const want = `[{"name":"id","type":"string","in":"path","required":true},` +
		`{"name":"q","type":"string","in":"query","required":false},` +
		`{"name":"state","type":"string","in":"query","required":false,"values":["open"]}]`
	if got := d.Operations[0]; got.Operation != "get" || string(got.Inputs) != want || got.Omitted != 0 {
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
	must.Do(t, err)
	index := must.Get(spec.NewIndex([]*spec.Connector{c}))(t)
	w := newWorldWith(t, false, func(*Config) {}, hello)
	w.plane.SetGrants(&Grants{Index: index})
	listed, omitted := 0, 0
	for _, op := range w.describe().Operations {
		listed, omitted = listed+strings.Count(string(op.Inputs), `"name"`), omitted+op.Omitted
	}
	if listed != 5000 || omitted != 300*50-5000 {
		t.Errorf("it lists %d inputs and omits %d", listed, omitted)
	}
}
