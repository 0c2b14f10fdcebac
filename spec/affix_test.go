package spec

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
)

// Text around a variable is compared byte by byte, and what is between is a value as any other.
func TestAVariableWithTextAround(t *testing.T) {
	t.Parallel()
	ix := index(t, connector(t, "github://acme/x",
		"GET a.example/Accounts/{Sid}.json bearer",
		"GET a.example/Accounts/{Sid}.min.json bearer",
		"GET a.example/Accounts/main.json bearer",
		"GET a.example/Accounts/{Sid}.json/Calls/{Call}.json bearer",
		"GET a.example/jobs/{name}:cancel bearer",
		"GET a.example/n/{x}20 bearer",
		"GET a.example/v{version}/me bearer",
		"GET wide.example/Accounts/{Sid}.json bearer",
		"GET wide.example/Accounts/{Sid} bearer",
		"GET wide.example/both/a{x} bearer",
		"GET wide.example/both/{x}b bearer",
		"GET wide.example/both/a{x}c/more bearer"))
	for _, w := range []struct{ url, want, params string }{
		{"a.example/Accounts/AC1.json", "op0", "[{Sid AC1}]"},
		{"a.example/Accounts/a.b.json", "op0", "[{Sid a.b}]"},
		{"a.example/Accounts/a.min.json", "op1", "[{Sid a}]"}, // the more text, the nearer
		{"a.example/Accounts/.min.json", "op0", "[{Sid .min}]"},
		{"a.example/Accounts/main.json", "op2", "[]"},
		{"a.example/Accounts/a.json/Calls/b.json", "op3", "[{Sid a} {Call b}]"},
		{"a.example/Accounts/a%20b.json", "op0", "[{Sid a%20b}]"},
		{"a.example/jobs/7:cancel", "op4", "[{name 7}]"},
		{"a.example/n/a20", "op5", "[{x a}]"},
		{"a.example/n/a%2020", "op5", "[{x a%20}]"},
		{"a.example/v2.1/me", "op6", "[{version 2.1}]"},
		{"wide.example/Accounts/AC1.json", "op7", "[{Sid AC1}]"},
		{"wide.example/Accounts/AC1.JSON", "op8", "[{Sid AC1.JSON}]"},
		{"wide.example/Accounts/.json", "op8", "[{Sid .json}]"},
		{"wide.example/both/ab", "op9", "[{x b}]"},
		{"wide.example/both/a1b", "op9", "[{x 1b}]"}, // of as much text, what stands before counts
		{"wide.example/both/1b", "op10", "[{x 1}]"},
		{"wide.example/both/a1c", "op9", "[{x 1c}]"}, // the path of op11 goes on

		{"a.example/Accounts/AC1", "", ""},
		{"a.example/Accounts/.json", "", ""},      // no value
		{"a.example/Accounts/..json", "", ""},     // a value of dots
		{"a.example/Accounts/...json", "", ""},    //
		{"a.example/Accounts/AC1.JSON", "", ""},   // another case
		{"a.example/Accounts/AC1%2Ejson", "", ""}, // another spelling
		{"a.example/Accounts/AC1%2ejson", "", ""},
		{"a.example/Accounts/AC1.%6Ason", "", ""},
		{"a.example/Accounts/AC1.json%00", "", ""},
		{"a.example/Accounts/%2E%2E.json", "", ""},
		{"a.example/Accounts/AC1;.json", "", ""}, // where some servers end a segment
		{"a.example/Accounts/AC1%3B.json", "", ""},
		{"a.example/Accounts/AC1.json;a=b", "", ""},
		{"a.example/Accounts/a%2Fb.json", "", ""}, // two segments
		{"a.example/Accounts/..%2Fb.json", "", ""},
		{"a.example/Accounts/a/b.json", "", ""},
		{`a.example/Accounts/a\b.json`, "", ""},
		{"a.example/Accounts/a%5Cb.json", "", ""},
		{"a.example/Accounts/a%252E.json", "", ""}, // twice escaped
		{"a.example/Accounts/AC1.json/", "", ""},
		{"a.example/jobs/7:CANCEL", "", ""},
		{"a.example/jobs/7%3Acancel", "", ""},
		{"a.example/n/a%20", "", ""}, // the text does not begin within an escape
		{"a.example/v/me", "", ""},
	} {
		m, no := ix.Match(target("GET https://" + w.url))
		got := ""
		if no == nil {
			got = m.Operation.Name
		}
		if params := fmt.Sprint(m.Params); got != w.want || no == nil && params != w.params {
			t.Errorf("%s is %q with %s, want %q with %s", w.url, got, params, w.want, w.params)
		}
	}
}

func TestTextAroundAVariableIsPlain(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"/a/{x}.json":      "",
		"/a/v{x}":          "",
		"/a/.{x}":          "",
		"/a/{x}{y}":        "is not {name}",
		"/a/{x}.{y}":       "is not {name}",
		"/a/{x}}":          "is not {name}",
		"/a/{{x}":          "is not {name}",
		"/a/{x":            "is not {name}",
		"/a/b{}c":          "is not {name}",
		"/a/{x}%2Ejson":    "is not {name}",
		"/a/{x};v=1":       "is not {name}",
		"/a/{x}.json/{x}":  "appears twice",
		"/a/{x...}.json":   "does not stand alone",
		"/a/b{x...}":       "does not stand alone",
		"/a/b{$}":          "stands alone",
		"/a/{x...}/{y}.md": "does not stand at the end",
	} {
		_, err := ParseTemplate(text)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	tmpl := must.Get(ParseTemplate("/bot{token}/send{what}.json"))(t)
	if got, ok := tmpl.Replace("/botx/sendMail.json", "token", "7:AB"); !ok || got != "/bot7:AB/sendMail.json" {
		t.Errorf("Replace = %q, %t", got, ok)
	}
}

// Two connectors may not claim one request with different credentials, whatever stands around a variable.
func TestTextAroundVariablesIsCompared(t *testing.T) {
	t.Parallel()
	for _, w := range []struct {
		a, b      string
		conflicts bool
	}{
		{"/{x}.json", "/{y}.json", true},
		{"/{x}.json", "/{y}.min.json", true},
		{"/{x}.json", "/a.json", true},
		{"/{x}.json", "/{y}", true},
		{"/{x}.json", "/{y...}", true},
		{"/a{x}", "/{y}b", true},
		{"/{x}.json/{i}", "/a.json/b", true},
		{"/{x}.json", "/{y}.csv", false},
		{"/a{x}", "/b{y}", false},
		{"/{x}.json", "/.json", false}, // which has no value
		{"/{x}.json", "/a.JSON", false},
		{"/{x}.json/a", "/{y}.json/b", false},
	} {
		for _, pair := range [][2]string{{w.a, w.b}, {w.b, w.a}} {
			_, err := NewIndex([]*Connector{connector(t, "hub://a/one", "GET h.example"+pair[0]+" bearer"),
				connector(t, "hub://a/two", "GET h.example"+pair[1]+" bearer")})
			if (err != nil) != w.conflicts {
				t.Errorf("%s and %s: %v, want a conflict: %t", pair[0], pair[1], err, w.conflicts)
			}
		}
		if a, b := must.Get(ParseTemplate(w.a))(t), must.Get(ParseTemplate(w.b))(t); w.conflicts &&
			(!a.Resembles(b) || !b.Resembles(a)) {
			t.Errorf("%s does not resemble %s", w.a, w.b)
		}
	}
	a, b := must.Get(ParseTemplate("/{x}.json"))(t), must.Get(ParseTemplate("/a.JSON/"))(t)
	if !a.Resembles(b) || !b.Resembles(a) || a.Resembles(must.Get(ParseTemplate("/a.csv"))(t)) {
		t.Error("what a server that ignores case takes for the same does not resemble it, or something else does")
	}
}

// slashes is a connector with paths whose slash at the end is optional.
const slashes = `{"schema_version": "aileron.connector.v1", "connector": {"fqn": "hub://a/one", "version": "1.0.0"},
 "tools": [{"name": "k", "operations": [
  {"name": "groups", "method": "GET", "path": "/apis/", "hosts": ["h.example"], "optional_slash": true},
  {"name": "group", "method": "GET", "path": "/apis/{group}/", "hosts": ["h.example"], "optional_slash": true},
  {"name": "any", "method": "GET", "path": "/{x}", "hosts": ["h.example"]},
  {"name": "both", "method": "GET", "path": "/both/", "hosts": ["h.example"], "optional_slash": true},
  {"name": "own", "method": "GET", "path": "/both", "hosts": ["h.example"], "approval": "required"},
  {"name": "post", "method": "POST", "path": "/both/", "hosts": ["h.example"], "optional_slash": true},
  {"name": "strict", "method": "GET", "path": "/strict/", "hosts": ["h.example"]}]}]}`

// With and without the slash a request is the same operation, unless another one has the path without.
func TestAnOptionalSlash(t *testing.T) {
	t.Parallel()
	c := must.Get(Parse([]byte(slashes)))(t)
	ix := index(t, c)
	for path, want := range map[string]string{
		"GET /apis/": "groups", "GET /apis": "groups", "GET /apis//": "",
		"GET /apis/apps": "group", "GET /apis/apps/": "group", "GET /apis/apps/v1": "",
		"GET /api": "any", "GET /strict/": "strict", "GET /strict": "any",
		"GET /both/": "both", "GET /both": "own", "POST /both": "post", "POST /both/": "post", "POST /apis": "",
	} {
		method, path, _ := strings.Cut(path, " ")
		got := ""
		if m, no := ix.Match(target(method + " https://h.example" + path)); no == nil {
			got = m.Operation.Name
		}
		if got != want {
			t.Errorf("%s %s is %q, want %q", method, path, got, want)
		}
	}
	two := func(path string) error {
		a := must.Get(Parse([]byte(strings.ReplaceAll(slashes, `"hosts": ["h.example"]`, `"hosts": ["h.example"],
			"credential": "bearer"`))))(t)
		_, err := NewIndex([]*Connector{a, connector(t, "hub://a/two", "POST h.example"+path+" bearer")})
		return err
	}
	if err := two("/both"); err == nil || !strings.Contains(err.Error(), "different credentials") {
		t.Errorf("another connector takes the path without the slash: %v", err)
	}
	must.Do(t, two("/other"))
	for _, path := range []string{"/", "/a", "/{x...}", "/{$}"} {
		_, err := Parse([]byte(strings.Replace(slashes, `"path": "/apis/"`, `"path": "`+path+`"`, 1)))
		if err == nil || !strings.Contains(err.Error(), "operations[0].optional_slash: the path has no slash at its end") {
			t.Errorf("%s: %v", path, err)
		}
	}
	op, _ := ix.Operation("hub://a/one", "k", "both")
	op.Injection = &Injection{Kind: KindOAuth2}
	login := &OAuth2{AuthorizeURL: "https://l.example/a", TokenURL: "https://h.example/both"}
	if err := op.CheckLogin(login); err == nil {
		t.Error("the path of tokens can be asked with the credential, without the slash")
	}
}
