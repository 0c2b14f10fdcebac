package spec

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
)

// withHeaders is a spec whose connector and only operation declare fields.
func withHeaders(top, operation, credential string) string {
	text := specWith(`"method": "GET", "path": "/", "hosts": ["a.example"], "headers": ` + operation + credential)
	return strings.Replace(text, `"tools"`, `"headers": `+top+`, "tools"`, 1)
}

const bearer = `, "credential": "bearer"`

func TestAnOperationAcceptsWhatItAndItsConnectorDeclare(t *testing.T) {
	c := must.Get(Parse([]byte(withHeaders(`["Anthropic-*", "x-app"]`,
		`["session_id", "X-GitHub-Api-Version", "x-amz-*", "x-goog-*", "acme-*"]`, bearer))))(t)
	op := c.Tools[0].Operations[0]
	if got, want := fmt.Sprint(c.Headers), "[anthropic-* x-app]"; got != want {
		t.Errorf("the connector declares %s, want %s", got, want)
	}
	want := "[anthropic-* x-app session_id x-github-api-version x-amz-* x-goog-* acme-*]"
	if got := fmt.Sprint(op.Headers); got != want {
		t.Errorf("the operation declares %s, want %s", got, want)
	}
	for _, name := range []string{"anthropic-version", "Anthropic-Beta", "ANTHROPIC-X-Y", "X-App", "session_id",
		"Session_id", "x-github-api-version", "X-Amz-Date", "X-Goog-Api-Client"} {
		if !op.AcceptsField(name) {
			t.Errorf("%s is not accepted", name)
		}
	}
	for _, name := range []string{"anthropic", "anthropic-", "anthropic_version", "xanthropic-a", "x-app-a", "x_app",
		"session-id", "x-github-api-version-2", "Accept", "",
		"X-Amz-Security-Token", "x-goog-iap-jwt-assertion", "x-goog-authenticated-user-email", "acme-token", "Acme-Client-Ip",
		"acme-method-override", "acme_x", "acme-auth", "Acme-Impersonate-User"} {
		if op.AcceptsField(name) {
			t.Errorf("%s is accepted", name)
		}
	}
}

func TestFieldsThatAConnectorMayNotDeclare(t *testing.T) {
	const reserved = "cannot be declared: it "
	for text, why := range map[string]string{
		"": "is neither the name", "*": "is neither the name", "-*": "is neither the name", "**": "is neither the name",
		"a*": "is not a prefix that ends in a dash", "x_*": "is not a prefix",
		"a-*-b": "is neither the name", "*-a": "is neither the name", "a-**": "is neither the name",
		"a b": "is neither the name", "a:": "is neither the name", "a,b": "is neither the name",
		"x-\u212aey": "is neither the name", "-a": "is neither the name", ":authority": "is neither the name",
		strings.Repeat("a", 65): "is neither the name",

		"Authorization": reserved + "carries a credential", "cookie": reserved + "carries a credential",
		"X-Api-Key": reserved + "carries a credential", "dpop": reserved + "carries",
		"Client-Cert": reserved + "carries", "X-SSL-Client-Cert": reserved + "carries", "x-client-cert": reserved + "carries",
		"signature":    reserved + "carries",
		"x_auth_token": reserved + "carries", "Set-Cookie": reserved + "carries", "x-auth-request-user": reserved + "carries",
		"Host": reserved + "belongs to the connection", "Content-Length": reserved + "belongs",
		"Transfer-Encoding": reserved + "belongs", "transfer_encoding": reserved + "belongs",
		"te": reserved + "belongs", "Connection": reserved + "belongs", "Keep-Alive": reserved + "belongs",
		"Upgrade": reserved + "belongs", "Expect": reserved + "belongs",
		"Proxy-Authorization": reserved + "belongs", "proxy-connection": reserved + "belongs", "Sec-WebSocket-Key": reserved +
			"belongs",
		"Accept-Encoding": reserved + "is set by aileron", "Range": reserved + "slices the response",
		"Sudo": reserved + "makes the server act", "Impersonate-User": reserved + "makes the server act",
		"x-impersonate": reserved + "makes", "On-Behalf-Of": reserved + "makes",
		"Remote-User": reserved + "carries", "From": reserved + "makes",
		"Forwarded": reserved + "claims", "Via": reserved + "claims", "X-Forwarded-Host": reserved + "claims",
		"x-forwarded_for": reserved + "claims", "X-Real-IP": reserved + "claims",
		"Client-Ip": reserved + "claims", "cf-connecting-ip": reserved + "claims",
		"X-HTTP-Method-Override": reserved + "leads", "X-HTTP-Host-Override": reserved + "leads", "X-Host": reserved +
			"leads", "X-Original-URL": reserved + "leads",
		"X-Unix-Socket": reserved + "leads", "X-Upstream-Https-Proxy": reserved + "leads", "Destination": reserved + "leads",
		"X-Aileron-Session": reserved + "belongs to aileron", "x-ms-client-principal-name": reserved + "is how a provider",

		"x-*": "is too wide a prefix: it covers", "proxy-*": "cannot be declared: each such field belongs",
		"x-forwarded-*": "cannot be declared: each such field claims",
		"sec-*":         "each such field belongs", "x-aileron-*": "each such field belongs to aileron",
		"content-*":     "is too wide a prefix: it covers content-length",
		"impersonate-*": "each such field makes", "x-original-*": "each such field leads",
		"client-*": "is too wide a prefix: it covers client-cert", "if-*": "it covers if-range",
		"accept-*": "it covers accept-encoding", "grpc-*": "it covers grpc-accept-encoding",
		"remote-*": "is too wide a prefix", "x-auth-*": "each such field carries", "transfer-*": "it covers",
	} {
		quoted := "[" + quote("x-fine") + ", " + quote(text) + "]"
		if text == "x-\u212aey" || strings.Contains(quoted, `\u`) {
			quoted = `["x-fine", "` + text + `"]`
		}
		for _, where := range []struct{ spec, path string }{
			{withHeaders(quoted, "[]", bearer), "headers[1]"},
			{withHeaders("[]", quoted, bearer), op0 + ".headers[1]"},
			{withHeaders("[]", quoted, ""), op0 + ".headers[1]"},
		} {
			_, err := Parse([]byte(where.spec))
			list := Diagnostics(err)
			if len(list) != 1 || list[0].Path != where.path || !strings.Contains(list[0].Message, why) {
				t.Errorf("%q: %v, want a diagnostic at %s with %q", text, err, where.path, why)
			}
		}
	}
}

func TestDeclaredFieldsAreReadStrictly(t *testing.T) {
	for _, c := range []struct{ top, operation, credential, path, why string }{
		{`["a-b", "A-B"]`, `[]`, bearer, "headers[1]", "appears twice"},
		{`["acme-*", "ACME-*"]`, `[]`, bearer, "headers[1]", "appears twice"},
		{`"a-b"`, `[]`, bearer, "headers", "is not a list"},
		{`[1]`, `[]`, bearer, "headers[0]", "is not a string"},
		{`[]`, `{"a": 1}`, bearer, op0 + ".headers", "is not a list"},
		{`[]`, `[null]`, bearer, op0 + ".headers[0]", "is not a string"},
		{`[` + strings.TrimSuffix(strings.Repeat(`"a-b",`, maxItems+1), ",") + `]`, `[]`, bearer, "headers",
			"more than 256 entries"},
		{`["x-acme-*"]`, `[]`, `, "credential": {"kind": "api_key", "inject": {"name": "X-Acme-Id"}}`, "headers[0]",
			"covers X-Acme-Id, where the credential of issues.get stands"},
		{`[]`, `["x_acme_id"]`, `, "credential": {"kind": "api_key", "inject": {"name": "X-Acme-Id"}}`, op0 + ".headers[0]",
			"covers X-Acme-Id, where the credential stands"},
		{`[]`, `["x-acme-*"]`, `, "credential": {"kind": "api_key", "inject": {"name": "X_Acme_Id"}}`, op0 + ".headers[0]",
			"covers X_Acme_Id"},
	} {
		_, err := Parse([]byte(withHeaders(c.top, c.operation, c.credential)))
		found := slices.ContainsFunc(Diagnostics(err), func(f *Diagnostic) bool {
			return f.Path == c.path && strings.Contains(f.Message,
				c.why)
		})
		if !found {
			t.Errorf("%.60s %s: %v, want a diagnostic at %s with %q", c.top, c.operation, err, c.path, c.why)
		}
	}
	if _, err := Parse([]byte(withHeaders(`["x-acme-*"]`, `[]`,
		`, "credential": {"kind": "api_key", "inject": {"in": "query", "name": "x-acme-id"}}`))); err != nil {
		t.Errorf("a credential in the query is in no field's way: %v", err)
	}
}

// Whatever a connector declares, no field of authority, framing or routing is
// accepted, in any spelling that a server folds into it, and what is accepted is
// a token that the pattern covers.
func FuzzDeclaredFields(f *testing.F) {
	for _, s := range []string{"anthropic-*", "x-goog-*", "Sudo", "x-*", "x_real_ip", "X-Forwarded.Host", "client-*", "a*",
		"*", "im*", "session_id", "ho\u017ft", "auth-*", "co-*"} {
		f.Add(s, "sudo")
	}
	never := strings.Fields(`sudo impersonate-user x-remote-user authorization cookie x-api-key host content-length
		transfer-encoding connection te upgrade proxy-authorization x-forwarded-for x-real-ip client-ip via forwarded
		x-http-method-override x-original-url x-unix-socket x-aileron-session client-cert x-ssl-client-cert
		accept-encoding range sec-websocket-key destination from signature x-goog-iap-jwt-assertion`)
	f.Fuzz(func(t *testing.T, pattern, name string) {
		p, why := parseFieldPattern(pattern)
		if why != "" {
			return
		}
		op := &Operation{Headers: []FieldPattern{p}}
		for _, n := range never {
			for _, spelled := range []string{n, strings.ToUpper(n), strings.ReplaceAll(n, "-", "_"), strings.ReplaceAll(n, "-",
				"."), strings.Replace(n, "-", "_", 1)} {
				if op.AcceptsField(spelled) {
					t.Errorf("with %q the field %s is accepted", pattern, spelled)
				}
			}
		}
		if isToken(name) && op.AcceptsField(name) && !strings.HasPrefix(strings.ToLower(name),
			strings.TrimSuffix(strings.ToLower(pattern), "*")) {
			t.Errorf("with %q the field %q is accepted", pattern, name)
		}
	})
}
