package spec

import (
	"reflect"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/spec/logins"

	"github.com/ALRubinger/aileron/e2e/must"
)

// gmailManifest and gmailSpec are the examples of ADR-0002 and of the description of connector specs.
const gmailManifest = `[connector]
name = "github://acme/aileron-connector-google"
version = "1.2.3"

[capabilities.network]
hosts = ["gmail.googleapis.com:443", "oauth2.googleapis.com:443"]

[capabilities.credential]
kind = "oauth2"
scope = "Read your email and send messages"

[capabilities.credential.oauth2]
authorize_url = "https://accounts.google.com/o/oauth2/v2/auth"
token_url     = "https://oauth2.googleapis.com/token"
client_id     = "1234567890-xxxxxxx.apps.googleusercontent.com"
client_secret = "bound-at-release"
scopes = [
  "https://www.googleapis.com/auth/gmail.send",
  "https://www.googleapis.com/auth/calendar.readonly",
]
auth_params = { access_type = "offline", prompt = "consent" }
`

const gmailSpec = `{"schema_version": "aileron.connector.v1",
 "connector": {"fqn": "github://acme/aileron-connector-google", "version": "1.2.3"},
 "tools": [{"name": "google", "description": "Google APIs", "operations": [
  {"name": "gmail.messages.search", "summary": "Search Gmail messages", "method": "GET",
   "path": "/gmail/v1/users/me/messages", "hosts": ["gmail.googleapis.com"], "idempotency": "idempotent",
   "credential": "oauth2",
   "inputs": [{"name": "q", "type": "string", "required": false, "description": "Gmail search query"}]}]}]}`

func TestAManifestDeclaresALogin(t *testing.T) {
	c := must.Get(Load([]byte(gmailManifest), []byte(gmailSpec)))(t)
	o := c.Credential().OAuth2
	if o == nil || o.Grant != logins.GrantCode || o.AuthorizeURL != "https://accounts.google.com/o/oauth2/v2/auth" ||
		o.TokenURL != "https://oauth2.googleapis.com/token" || len(o.Scopes) != 2 ||
		o.ClientID != "1234567890-xxxxxxx.apps.googleusercontent.com" || o.AuthParams["access_type"] != "offline" {
		t.Fatalf("the login is %+v", o)
	}
	if hosts := o.AskedHosts(); len(hosts) != 1 || hosts[0].String() != "oauth2.googleapis.com:443" {
		t.Errorf("the hosts that are asked are %v", hosts)
	}
	head, _, _ := strings.Cut(gmailManifest, "[capabilities.credential.oauth2]")
	o.AuthParams["hint"] = `a "ü" \ b`
	again := must.Get(ParseManifest([]byte(head + o.TOML())))(t)
	if !reflect.DeepEqual(again.Credential.OAuth2, o) {
		t.Errorf("written and read again, the login is %+v, want %+v", again.Credential.OAuth2, o)
	}
	// A sandbox sees the manifest without the value of the client.
	manifest, _ := c.Documents()
	if strings.Contains(string(manifest), logins.PlaceholderSecret) || must.Get(ParseManifest(manifest))(t).Name != c.FQN {
		t.Errorf("the manifest for the sandbox is\n%s", manifest)
	}
}

func TestLoginsOfOtherGrants(t *testing.T) {
	for _, table := range []string{
		"grant = \"device_code\"\ntoken_url = \"https://oauth2.googleapis.com/token\"\n" +
			"device_authorization_url = \"https://oauth2.googleapis.com/device\"\nauth_params = {audience = \"a b\"}\n",
		"grant = \"client_credentials\"\ntoken_url = \"https://oauth2.googleapis.com/token\"\n",
		"authorize_url = \"https://a.example/x?y=1\"\ntoken_url = \"https://oauth2.googleapis.com/token\"\n" +
			"revoke_url = \"https://oauth2.googleapis.com/revoke\"\n",
	} {
		head, _, _ := strings.Cut(gmailManifest, "authorize_url")
		if _, err := ParseManifest([]byte(head + table)); err != nil {
			t.Errorf("%s: %v", table, err)
		}
	}
}

func TestMistakesInALogin(t *testing.T) {
	const at = "capabilities.credential.oauth2"
	for _, c := range []struct{ old, new, want string }{
		{"https://oauth2.googleapis.com/token", "http://oauth2.googleapis.com/token", "line 14: " + at +
			".token_url: \"http://oauth2.googleapis.com/token\" does not begin with https://"},
		{"https://oauth2.googleapis.com/token", "https://evil.example/token", at + ".token_url: its host evil.example:443 " +
			"is not among capabilities.network.hosts: add it"},
		{"https://oauth2.googleapis.com/token", "https://oauth2.googleapis.com:8443/token",
			"host oauth2.googleapis.com:8443"},
		{"https://oauth2.googleapis.com/token", "https://oauth2.googleapis.com@evil.example/", "a user before the host"},
		{"https://oauth2.googleapis.com/token", "https://oauth2.googleapis.com/token#x", "a fragment"},
		{"https://oauth2.googleapis.com/token", "https://oauth2.googleapis.com/a?client_secret=x", "has \"client_secret\""},
		{"https://oauth2.googleapis.com/token", "https://oauth2.googleapis.com/x/../token", "its path is not plain"},
		{"https://oauth2.googleapis.com/token", "https://oauth2.googleapis.com/%74oken", "its path is not plain"},
		{"https://oauth2.googleapis.com/token", "https://oauth2.googleapis.com//token", "its path is not plain"},
		{"https://oauth2.googleapis.com/token", "https://oauth2.googleapis.com/{tenant}/token", "its path is not plain"},
		{"https://oauth2.googleapis.com/token", "https://127.0.0.1/token", "is an address"},
		{"https://oauth2.googleapis.com/token", "https://localhost/token", "leads to this machine"},
		{"https://oauth2.googleapis.com/token", "https://oauth2.googleapis.com/\\u0000", "plain ASCII"},
		{"https://oauth2.googleapis.com/token", "https://oauth2.googleapis.com/" + strings.Repeat("x", 2048),
			"at most 2048 characters"},
		{"https://oauth2.googleapis.com/token", "",
			at + ".token_url: it is missing, and grant = \"authorization_code\" needs it"},
		{"https://accounts.google.com/o/oauth2/v2/auth", "https://a.example/?redirect_uri=https://evil.example",
			"line 13: " + at + ".authorize_url: its query has \"redirect_uri\""},
		{"authorize_url =", "authorise_url =", at + ".authorise_url: unknown key"},
		{"authorize_url =", "AUTHORIZE_URL =", at + ".AUTHORIZE_URL: unknown key"},
		{"client_id     =", "client_id = \"twice\"\nclient_id =", "has already been defined"},
		{"1234567890-x", "1234567890 x", at + ".client_id: it is not at most 512 characters"},
		{"client_id     = \"1234567890-xxxxxxx.apps.googleusercontent.com\"", "", "there is no client_id"},
		{"bound-at-release", "a\\rb-at-release", at + ".client_secret: it is not 8 to 512 characters"},
		{"bound-at-release", "short", at + ".client_secret: it is not 8 to 512 characters"},
		{"bound-at-release", "\\u0062ound-at-release", at + ".client_secret: write it without escapes"},
		{"calendar.readonly", "gmail.send", "line 17: " + at + ".scopes[1]: " +
			"\"https://www.googleapis.com/auth/gmail.send\" appears twice"},
		{"auth/calendar.readonly", "a https://b", at + ".scopes[1]: \"https://www.googleapis.com/a https://b\" has a space"},
		{"auth/calendar.readonly", "\\u0000", at + ".scopes[1]: it is not 1 to 256"},
		{"auth/calendar.readonly", strings.Repeat("x", 256), at + ".scopes[1]: it is not 1 to 256"},
		{"scopes = [", "scopes = [" + strings.Repeat(`"a",`, 64), at + ".scopes: it has more than 64 entries"},
		{"access_type", "redirect_uri", "line 21: " + at + ".auth_params: \"redirect_uri\" is a parameter that aileron sets"},
		{"access_type", "Code_Challenge", "\"Code_Challenge\" is a parameter that aileron sets"},
		{"access_type", "state", "\"state\" is a parameter"}, {"access_type", "client_id", "\"client_id\" is a parameter"},
		{"access_type", "response_type", "\"response_type\" is"}, {"access_type", "scope", "\"scope\" is"},
		{"access_type", "\"a b\"", at + ".auth_params: \"a b\" is not letters"},
		{"\"offline\"", "\"off\\nline\"", at + ".auth_params: the value of \"access_type\" is not 1 to 1024 bytes"},
		{"\"offline\"", "{ x = \"y\" }", at + ".auth_params: it is not a table of strings"},
		{"{ access_type = \"offline\", prompt = \"consent\" }", "[]", at + ".auth_params: it is not a table of strings"},
		{"access_type", params(17) + "access_type", "more than 16 entries"},
		{"authorize_url =", "grant = \"password\"\nauthorize_url =",
			at + ".grant: \"password\" is not \"authorization_code\" or"},
		{"authorize_url =", "grant = \"device_code\"\nauthorize_url =", ".device_authorization_url: it is missing"},
		{"authorize_url =", "device_authorization_url = \"https://oauth2.googleapis.com/d\"\nauthorize_url =",
			".device_authorization_url: it is for grant = \"device_code\""},
		{"authorize_url =", "grant = \"client_credentials\"\nauthorize_url =", ".client_secret: with grant = " +
			"\"client_credentials\" it is a credential, which the user binds: remove it"},
		{"authorize_url =", "revoke_url = \"https://revoke.example/\"\nauthorize_url =",
			at + ".revoke_url: its host revoke.example:443 is not among"},
		{"kind = \"oauth2\"", "kind = \"bearer\"",
			"line 12: " + at + ": the table is for kind = \"oauth2\", and the kind is"},
	} {
		text := strings.Replace(gmailManifest, c.old, c.new, 1)
		if _, err := ParseManifest([]byte(text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("with %.60q the error is %v, want %q in it", c.new, err, c.want)
		}
	}
}

// params returns entries of an inline table.
func params(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(strings.Repeat("p", i+1) + " = \"v\", ")
	}
	return b.String()
}

// What was installed before manifests declared a login is still used; a new connector says how its tokens are obtained.
func TestANewConnectorDeclaresItsLogin(t *testing.T) {
	before, _, _ := strings.Cut(gmailManifest, "[capabilities.credential.oauth2]")
	c := must.Get(Load([]byte(before), []byte(gmailSpec)))(t)
	const want = "needs the table [capabilities.credential.oauth2]"
	if err := c.Manifest.CheckLogin(); err == nil || !strings.Contains(err.Error(), want) ||
		!strings.Contains(err.Error(), "declare kind = \"bearer\"") {
		t.Errorf("without the table: %v", err)
	}
	for _, text := range []string{gmailManifest, goodManifest} {
		m := must.Get(ParseManifest([]byte(text)))(t)
		must.Do(t, m.CheckLogin())
	}
}

// With its credential, a request of a sandbox is never one that issues or revokes tokens, whichever spelling of a path
// an agent chooses.
func TestNoOperationAsksForTokens(t *testing.T) {
	const manifest = `[connector]
name = "github://acme/chat"
version = "1.0.0"

[capabilities.network]
hosts = ["api.chat.example:443", "*.chat.example:443", "other.example:443"]

[capabilities.credential]
kind = "oauth2"
scope = "Chat"

[capabilities.credential.oauth2]
grant = "device_code"
token_url = "https://api.chat.example/api/oauth.access"
device_authorization_url = "https://api.chat.example/api/oauth/device"
revoke_url = "https://api.chat.example"
`
	const methods = `, "inputs": [{"name": "method", "type": "string", "values": `
	for _, c := range []struct{ host, path, more, want string }{
		{"api", "/api/{method}", "", `"run" can be a request to token_url, https://api.chat.example/api/oauth.access, ` +
			`which only aileron may ask with this credential: declare another path or the values of its variables`},
		{"api", "/api/oauth.access", "", "token_url"},
		{"api", "/api/{rest...}", "", "token_url"},
		{"*", "/api/{method}", `, "wildcard_credential": true`, "token_url"},
		{"api", "/api/{method}", methods + `["chat.post", "*.access"]}]`, "token_url"},
		{"api", "/{all}", `, "escaped_slash": true`, "token_url"},
		{"api", "/{method}", `, "escaped_slash": true` + methods + `["*access"]}]`, "token_url"},
		{"api", "/api/oauth/{kind}", "", "device_authorization_url"},
		{"api", "/api/{what}", `, "inputs": [{"name": "what", "type": "string", "escaped_slash": true, ` +
			`"values": ["*device"]}]`, "device_authorization_url"},
		{"api", "/", "", "revoke_url, https://api.chat.example,"},
		{"api", "/api/{method}", methods + `["chat.post", "*.list"]}]`, ""},
		{"api", "/api/{method}/more", "", ""},
		{"api", "/api/chat.post", "", ""},
		{"api", "/v2/{rest...}", "", ""},
		{"other.example", "/{all...}", "", ""},
	} {
		host := c.host
		if !strings.Contains(host, ".") {
			host += ".chat.example"
		}
		operation := `{"name": "run", "method": "POST", "path": "` + c.path + `", "hosts": ["` + host + `"]` + c.more
		declare := func(rest string) error {
			_, err := Load([]byte(manifest), []byte(`{"schema_version": "aileron.connector.v1",
 "connector": {"fqn": "github://acme/chat", "version": "1.0.0"}, "tools": [{"name": "chat", "operations": [
  {"name": "get", "method": "GET", "path": "/v3/chats", "hosts": ["api.chat.example"], "credential": "oauth2"},
  `+operation+rest+`}]}]}`))
			return err
		}
		err := declare(`, "credential": "oauth2"`)
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s%s: %v", c.path, c.more, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) ||
			!strings.Contains(err.Error(), "tools[0].operations[1].path: ")):
			t.Errorf("%s%s: the error is %v, want %q in it", c.path, c.more, err, c.want)
		}
		if err := declare(""); err != nil && !strings.Contains(c.more, "wildcard_credential") {
			t.Errorf("%s%s, without the credential: %v", c.path, c.more, err)
		}
	}
}
