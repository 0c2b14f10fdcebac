package spec

import (
	"strings"
	"testing"
)

// SPC-03: what no operation may declare.
func TestMethodsAndPathsThatASpecMayNotDeclare(t *testing.T) {
	for method, why := range map[string]string{
		"get": `methods are case-sensitive: use "GET"`, "Post": `use "POST"`, "CONNECT": "never forwarded",
		"TRACE": "never forwarded", "trace": "never forwarded",
		"TRACK": "never forwarded", "PRI": "never forwarded", "FOO": "is not in the IANA HTTP Method Registry",
		"PURGE": "is not in the IANA HTTP Method Registry", "GET,POST": "is not in the IANA HTTP Method Registry",
		"GET POST": "is not in the IANA HTTP Method Registry", " GET": "is not in the IANA HTTP Method Registry",
		"**": "is not in the IANA HTTP Method Registry", "G\u0415T": "is not in the IANA HTTP Method Registry",
	} {
		for _, credential := range []string{"", `, "credential": "bearer"`} {
			wantOnly(t, `"method": `+quote(method)+`, "path": "/", "hosts": ["a.example"]`+credential, op0+".method", why)
		}
	}
	wantOnly(t, `"method": "", "path": "/", "hosts": ["a.example"]`, op0+".method", "it is empty")
	for path, why := range map[string]string{
		"..": "begin with a slash", "/a/../b": "not plain", "//a": "not plain", "/a%2fb": "not plain", "/a?x=1": "not plain",
		"/a#f": "not plain", "/a b": "not plain",
		"/{a}{b}": "is not {name}", "/{..}": "is not {name}", "": "it is empty",
	} {
		wantOnly(t, `"method": "GET", "path": `+quote(path)+`, "hosts": ["a.example"]`, op0+".path", why)
	}
}

func TestEveryRegisteredMethodMayBeDeclared(t *testing.T) {
	for _, method := range append([]string{"*"}, methods...) {
		if _, err := Parse([]byte(specWith(`"method": ` + quote(method) +
			`, "path": "/", "hosts": ["a.example"], "credential": "bearer"`))); err != nil {
			t.Errorf("%s: %v", method, err)
		}
	}
}

// TRACE returns the credential in its response, and a name that is not
// registered may mean anything to the server.
func TestAnyMethodStandsForTheRegisteredOnes(t *testing.T) {
	ix := index(t, connector(t, "hub://a/one",
		"* a.example/v1/{x} bearer", // op0
		"* a.example/open/{x}",      // op1
		"- a.example/some/{x}",      // op2
		"- b.example",               // op3
		"GET b.example/x bearer",    // op4
	))
	for request, want := range map[string]string{
		"GET a.example/v1/x": "op0", "PROPFIND a.example/v1/x": "op0", "VERSION-CONTROL a.example/v1/x": "op0",
		"TRACE a.example/v1/x": "never forwarded", "TRACK a.example/v1/x": "never forwarded",
		"CONNECT a.example/v1/x": "never forwarded", "PRI a.example/v1/x": "never forwarded",
		"FOO a.example/v1/x": "is not in the IANA HTTP Method Registry", "get a.example/v1/x": `use "GET"`,
		"Get a.example/v1/x": `use "GET"`, "* a.example/v1/x": "is not in the IANA HTTP Method Registry",
		"TRACE a.example/open/x": "never forwarded", "FOO a.example/open/x": "is not in the IANA HTTP Method Registry",
		"TRACE a.example/some/x": "never forwarded", "PUT a.example/some/x": "op2",
		"FOO b.example/y": "op3", "get b.example/x": "op3", // without a credential: the host is allowed as it is
	} {
		m, no := ix.Match(target(request))
		switch {
		case no == nil && m.Operation.Name != want:
			t.Errorf("%s is %s, want %q", request, m.Operation.Name, want)
		case no != nil && (no.Reason != ReasonOperation || !strings.Contains(no.Error(), want)):
			t.Errorf("%s is refused: %s %v, want %s and %q", request, no.Reason, no, ReasonOperation, want)
		}
		if no == nil {
			continue
		}
		for _, op := range ix.Connectors()[0].Tools[0].Operations[:3] {
			if _, no := ix.MatchOperation(op, target(request)); no == nil {
				t.Errorf("%s is inside %s", request, op.Name)
			}
		}
	}
}

const op0 = "tools[0].operations[0]"

// wantOnly fails the test unless an operation with these fields has exactly one
// diagnostic, at the path, whose message contains why.
func wantOnly(t *testing.T, fields, path, why string) {
	t.Helper()
	_, err := Parse([]byte(specWith(fields)))
	list := Diagnostics(err)
	if len(list) != 1 || list[0].Path != path || !strings.Contains(list[0].Message, why) {
		t.Errorf("the diagnostics of {%s} are %v, want one at %s with %q", fields, err, path, why)
	}
}
