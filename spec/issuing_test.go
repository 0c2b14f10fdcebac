package spec

import (
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
)

// Paths of real services: what issues credentials, and what only sounds like it.
func TestOperationsThatMayIssueCredentialsAreKnownByTheirWords(t *testing.T) {
	for _, c := range []struct {
		method, path, name string
		want               bool
	}{
		{"POST", "/v1/tokens", "create", true},
		{"POST", "/app/installations/{id}/access_tokens", "create", true},
		{"POST", "/orgs/{org}/actions/runners/registration-token", "create", true},
		{"POST", "/orgs/{org}/actions/runners/generate-jitconfig", "create", true},
		{"POST", "/api/v4/projects/{id}/access_tokens", "create", true},
		{"POST", "/api/v4/projects/{id}/deploy_tokens/{token}/rotate", "rotate", true},
		{"POST", "/v1/projects/-/serviceAccounts:generateAccessToken", "generate", true},
		{"POST", "/api/v1/apikeys", "create", true},
		{"PUT", "/clients/{id}/client-secret", "reset", true},
		{"GET", "/token", "token", true},
		{"GET", "/v1/database/credentials/{role}", "read", true},
		{"POST", "/v1/things", "create_api_key", true},
		{"", "/v1/tokens", "all", true},
		{"POST", "/v1/things", "tokens.create", true},
		{"POST", "/v1/projects/{project}/serviceAccounts/{account}/keys", "create", true},
		{"GET", "/v1/projects/{project}/serviceAccounts/{account}/keys", "list", false},

		{"GET", "/api/v4/personal_access_tokens", "list", false},
		{"DELETE", "/v1/tokens/{id}", "delete", false},
		{"HEAD", "/v1/tokens", "head", false},
		{"POST", "/v1/messages/count_tokens", "count_tokens", false},
		{"POST", "/v1beta/models/some:countTokens", "count_tokens", false},
		{"GET", "/repos/{owner}/{repo}/actions/secrets", "list_secrets", false},
		{"POST", "/repos/{owner}/{repo}/issues", "create_issue", false},
		{"POST", "/repos/{owner}/{repo}/keys", "add_deploy_key", false},
		{"POST", "/tokenizers", "create", false},
	} {
		o := &Operation{Name: c.name, Method: c.method, Path: must.Get(ParseTemplate(c.path))(t), Injection: &Injection{}}
		if got := o.MayIssueCredentials(); got != c.want {
			t.Errorf("%s %s (%s): %v", c.method, c.path, c.name, got)
		}
		if o.Injection = nil; o.MayIssueCredentials() {
			t.Errorf("%s %s: without a credential of its own", c.method, c.path)
		}
	}
}
