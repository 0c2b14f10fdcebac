package spec_test

import (
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/spec"
)

// slashed is a connector whose first operation has two variables, and an escaped slash in one of them.
const slashed = `{"schema_version": "aileron.connector.v1", "connector": {"fqn": "github://acme/x", "version": "1.0.0"},
 "tools": [{"name": "x", "description": "X", "operations": [
  {"name": "checks", "method": "GET", "path": "/repos/{owner}/commits/{ref}/checks", "hosts": ["h.test"],
   "credential": "bearer", "inputs": [{"name": "ref", "type": "string", "escaped_slash": true}]},
  {"name": "contents", "method": "GET", "path": "/contents/{path...}", "hosts": ["h.test"], "credential": "bearer",
   "escaped_slash": true},
  {"name": "plain", "method": "GET", "path": "/plain/{a}/{b}", "hosts": ["h.test"], "credential": "bearer"},
  {"name": "rest", "method": "GET", "path": "/plain/{all...}", "hosts": ["h.test"], "credential": "bearer",
   "escaped_slash": true},
  {"name": "literal", "method": "DELETE", "path": "/repos/{owner}", "hosts": ["h.test"], "credential": "bearer"}]}]}`

func TestAnEscapedSlashIsInADeclaredVariableAlone(t *testing.T) {
	t.Parallel()
	c := must.Get(spec.Parse([]byte(slashed)))(t)
	ix := must.Get(spec.NewIndex([]*spec.Connector{c}))(t)
	for path, want := range map[string]string{
		"/repos/o/commits/feature%2Fx/checks":    "checks",
		"/repos/o/commits/a%2fb%2Fc/checks":      "checks",
		"/repos/o/commits/main/checks":           "checks",
		"/contents/docs%2FREADME.md":             "contents",
		"/contents/docs%2Fa/b%2Fc":               "contents",
		"/plain/a%2Fb/c":                         "rest", // the nearer template does not declare it
		"/plain/a/b":                             "plain",
		"/repos/o%2Fp/commits/main/checks":       "", // another variable
		"/repos/o/commits%2Fmain/checks":         "", // a literal
		"/repos/o/commits/a/checks%2F..":         "",
		"/repos/o/commits/%2Fa/checks":           "", // an empty segment
		"/repos/o/commits/a%2F/checks":           "",
		"/repos/o/commits/a%2F%2Fb/checks":       "",
		"/repos/o/commits/%2F/checks":            "",
		"/repos/o/commits/%2f..%2f/checks":       "", // dot segments
		"/repos/o/commits/a%2F..%2Fb/checks":     "",
		"/repos/o/commits/a%2F../checks":         "",
		"/repos/o/commits/..%2Fb/checks":         "",
		"/repos/o/commits/a%2F.%2Fb/checks":      "",
		"/repos/o/commits/a%2F%2e%2e%2Fb/checks": "",
		"/repos/o/commits/a%252Fb/checks":        "", // twice escaped
		"/repos/o/commits/a%2F%252e/checks":      "",
		"/repos/o/commits/a%2F%2500/checks":      "",
		"/repos/o/commits/a%5Cb/checks":          "", // another slash
		"/repos/o/commits/a%2F%5C..%5Cb/checks":  "",
		"/repos/o/commits/a%2Fb;c/checks":        "",
		"/repos/o/commits/a%2Fb%3Bc/checks":      "",
		"/repos/o/commits/a%2Fb%00/checks":       "",
		"/contents/a%2F../b":                     "",
		"/contents/a/..%2Fb":                     "",
	} {
		m, no := ix.Match(spec.Target{Scheme: "https", Host: "h.test", Port: 443, Method: "GET", Path: path})
		switch {
		case want == "" && (no == nil || no.Reason != spec.ReasonOperation):
			t.Errorf("%s is %v, %v, want none", path, m.Operation, no)
		case want != "" && (no != nil || m.Operation.Name != want):
			t.Errorf("%s is %+v, %v, want %s", path, m.Operation, no, want)
		case want != "" && m.HasEscapedSlash() != strings.Contains(strings.ToUpper(path), "%2F"):
			t.Errorf("HasEscapedSlash of %s is %v", path, m.HasEscapedSlash())
		}
	}
}

func TestAnEscapedSlashNeedsAVariable(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ old, new, at string }{
		{`"name": "ref"`, `"name": "other"`, "tools[0].operations[0].inputs[0].escaped_slash"},
		{`"/contents/{path...}"`, `"/contents"`, "tools[0].operations[1].escaped_slash"},
	} {
		_, err := spec.Parse([]byte(strings.Replace(slashed, c.old, c.new, 1)))
		if err == nil || !strings.Contains(err.Error(), c.at) {
			t.Errorf("with %s: %v, want %s", c.new, err, c.at)
		}
	}
}

// A server that reads escaped slashes as slashes finds a nearer operation's path in what a wider one allows.
func TestAnEscapedSlashEvadesNoNearerOperation(t *testing.T) {
	t.Parallel()
	c, err := spec.Parse([]byte(`{"schema_version": "aileron.connector.v1", "connector": {"fqn": "github://acme/x",
	 "version": "1.0.0"}, "tools": [{"name": "x", "description": "X", "operations": [
	  {"name": "rest", "method": "GET", "path": "/f/{path...}", "hosts": ["h.test"], "credential": "bearer",
	   "escaped_slash": true},
	  {"name": "asked", "method": "GET", "path": "/f/secret/{id}", "hosts": ["h.test"], "credential": "bearer",
	   "approval": "required"},
	  {"name": "limited", "method": "GET", "path": "/f/kind/{kind}", "hosts": ["h.test"], "credential": "bearer",
	   "inputs": [{"name": "kind", "type": "string", "values": ["good"]}]},
	  {"name": "queried", "method": "GET", "path": "/f/q/{id}", "hosts": ["h.test"], "credential": "bearer",
	   "query": "declared", "inputs": [{"name": "id", "type": "string"}]},
	  {"name": "put", "method": "PUT", "path": "/f/put/{id}", "hosts": ["h.test"], "credential": "bearer",
	   "approval": "required"}]}]}`))
	if err != nil {
		t.Fatal(err)
	}
	ix := must.Get(spec.NewIndex([]*spec.Connector{c}))(t)
	for path, want := range map[string]string{
		"/f/other%2F7": "rest", "/f/put%2F7": "rest", "/f/secret%2F7%2Fx": "rest", "/f/secret/7": "asked",
		"/f/secret%2F7": "", "/f/secret%2f7": "",
		"/f/kind%2Fgood": "rest", "/f/kind%2Fbad": "", "/f/q%2F7": "rest", "/f/q%2F7?a=1": "", "/f/p%2F7?a=1": "rest",
	} {
		target := spec.Target{Scheme: "https", Host: "h.test", Port: 443, Method: "GET"}
		target.Path, target.Query, _ = strings.Cut(path, "?")
		m, no := ix.Match(target)
		switch {
		case want == "" && no == nil:
			t.Errorf("%s is %s, want none", path, m.Operation.Name)
		case want != "" && (no != nil || m.Operation.Name != want):
			t.Errorf("%s is %+v, %v, want %s", path, m.Operation, no, want)
		}
	}
}
