package allow

import (
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/spec"
	"github.com/ALRubinger/aileron/spec/local"
)

// A sandbox chooses the path of its request: what a person allows is that path and no pattern.
func TestThePathOfARowDoesNotBecomeAPattern(t *testing.T) {
	row := audit.Row{Scheme: "https", Method: "GET", Host: "api.example", Port: 443, Path: "/v1/{rest...}",
		Reason: "host_not_allowed"}
	if _, err := (Operation{}).ForRow(row, nil); err == nil || !strings.Contains(err.Error(),
		"the path has braces") {
		t.Errorf("got %v", err)
	}
	row.Path = "/v1/items"
	made, err := (Operation{}).ForRow(row, nil)
	if err != nil || len(made.Operations) != 1 || made.Operations[0].Path != "/v1/items" || made.Credential != nil {
		t.Errorf("%+v, %v", made, err)
	}
}

// What is allowed of one host carries one credential, or none.
func TestWhatIsAllowedWithoutACredentialCarriesNone(t *testing.T) {
	c := must.Get(local.Connector{Host: "api.example", Version: firstVersion, Scope: "Read",
		Credential: &spec.Injection{Kind: "api_key", In: "header", Name: "X-Api-Key", Format: "{secret}"},
		Operations: []local.Operation{{Method: "GET", Path: "/v1/items"}}}.Load())(t)
	row := audit.Row{Scheme: "https", Method: "GET", Host: "api.example", Port: 443, Path: "/v1/users",
		Reason: "operation_not_matched", ConnectorFQN: string(c.FQN)}
	made, err := Operation{NoCredential: true}.ForRow(row, []*spec.Connector{c})
	if err == nil || !strings.Contains(err.Error(), "local://allowed/api.example injects one") {
		t.Errorf("got %+v, %v", made, err)
	}
}
