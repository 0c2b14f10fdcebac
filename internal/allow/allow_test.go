package allow

import (
	"reflect"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/spec"
	"github.com/ALRubinger/aileron/spec/catalog"
	"github.com/ALRubinger/aileron/spec/local"
	"github.com/ALRubinger/aileron/spec/store"
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

// What is allowed of a host whose credential comes from a login has a login of its own, with the same client.
func TestWhatIsAllowedWithALoginHasTheLogin(t *testing.T) {
	google, _ := catalog.Find("google")
	row := audit.Row{Scheme: "https", Method: "DELETE", Host: "gmail.googleapis.com", Port: 443,
		Path: "/gmail/v1/users/me/messages/1", Reason: "operation_not_matched", ConnectorFQN: string(google.Connector.FQN)}
	made := must.Get((Operation{}).ForRow(row, []*spec.Connector{google.Connector}))(t)
	row.Path = "/gmail/v1/users/me/messages/2"
	both := must.Get((Operation{}).ForRow(row, []*spec.Connector{google.Connector, must.Get(made.Load())(t)}))(t)
	dir := t.TempDir()
	must.Do(t, both.Write(dir))
	c := must.Get(store.Read(dir))(t)
	want := google.Connector.Credential()
	if got := c.Credential(); got.Kind != want.Kind || !reflect.DeepEqual(got.OAuth2, want.OAuth2) ||
		len(c.Tools[0].Operations) != 2 {
		t.Errorf("it has %+v, want %+v", got.OAuth2, want.OAuth2)
	}
	linear, _ := catalog.Find("linear")
	row.Method, row.Host, row.Path = "POST", "api.linear.app", "/oauth/revoke"
	row.ConnectorFQN = string(linear.Connector.FQN)
	if _, err := (Operation{}).ForRow(row, []*spec.Connector{linear.Connector}); err == nil ||
		!strings.Contains(err.Error(), "only aileron may ask with this credential") {
		t.Errorf("a request that revokes tokens: %v", err)
	}
}

// A host that only issues tokens is none that the catalogue's connector is for.
func TestAHostOfTokensIsAllowedByItself(t *testing.T) {
	if made, err := ForHost("oauth2.googleapis.com", nil); err != nil || len(made.Operations) != 1 {
		t.Errorf("got %+v, %v", made, err)
	}
	if _, err := ForHost("gmail.googleapis.com", nil); err == nil ||
		!strings.Contains(err.Error(), "the catalogue has a connector for it") {
		t.Errorf("a host of its operations: %v", err)
	}
}

// What an operation refuses by its body is allowed by that operation alone, and the hint names what is to be added.
func TestTheHintAboutAToolNamesWhereItIsAllowed(t *testing.T) {
	row := audit.Row{Reason: "content_not_allowed", Operation: "messages", ConnectorFQN: "github://acme/m",
		Fields: map[string]any{"mcp_method": "tools/call", "mcp_tool": "delete_issue"}}
	for _, want := range []string{"the operation messages of github://acme/m", `the tool "delete_issue"`,
		`"mcp": {"tools"`, "aileron connector show github://acme/m"} {
		if got := contentHint(row); !strings.Contains(got, want) {
			t.Errorf("the hint is %q, want %q", got, want)
		}
	}
	row.Fields = map[string]any{"graphql_type": "mutation"}
	if got := contentHint(row); !strings.Contains(got, `"graphql": {"type", "fields"}`) {
		t.Errorf("the hint is %q", got)
	}
	row.Reason = "approval_denied"
	if got := contentHint(row); got != "" {
		t.Errorf("the hint is %q, want none", got)
	}
}
