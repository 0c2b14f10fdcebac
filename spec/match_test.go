package spec

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
)

// connector returns a connector with an operation for each line, "METHOD
// host/path" and options: the kind of its credential, q=a,b for declared inputs,
// ?name for a credential in the query, wild for "wildcard_credential".
func connector(t testing.TB, fqn string, lines ...string) *Connector {
	t.Helper()
	var ops []string
	for i, line := range lines {
		fields := strings.Fields(line)
		op := fmt.Sprintf(`{"name": "op%d"`, i)
		if fields[0] != "-" {
			op += fmt.Sprintf(`, "method": %q`, fields[0])
		}
		host, path, found := strings.Cut(fields[1], "/")
		op += fmt.Sprintf(`, "hosts": [%q]`, host)
		if found {
			op += fmt.Sprintf(`, "path": %q`, "/"+path)
		}
		for _, option := range fields[2:] {
			names, isQuery := strings.CutPrefix(option, "q=")
			switch {
			case isQuery:
				var inputs []string
				for n := range strings.SplitSeq(names, ",") {
					inputs = append(inputs, fmt.Sprintf(`{"name": %q}`, n))
				}
				op += `, "inputs": [` + strings.Join(inputs, ", ") + `]`
			case option == "wild":
				op += `, "wildcard_credential": true`
			case strings.HasPrefix(option, "?"):
				op += fmt.Sprintf(`, "credential": {"kind": "bearer", "inject": {"in": "query", "name": %q}}`, option[1:])
			default:
				op += fmt.Sprintf(`, "credential": %q`, option)
			}
		}
		ops = append(ops, op+"}")
	}
	c := must.Get(Parse(fmt.Appendf(nil, `{"schema_version": "aileron.connector.v1",
		"connector": {"fqn": %q, "version": "1.0.0"},
		"tools": [{"name": "tool", "operations": [%s]}]}`, fqn, strings.Join(ops, ",\n"))))(t)
	return c
}

func index(t testing.TB, connectors ...*Connector) *Index {
	t.Helper()
	return must.Get(NewIndex(connectors))(t)
}

// target reads "METHOD scheme://host:port/path?query" without repairing it.
func target(s string) Target {
	method, url, _ := strings.Cut(s, " ")
	scheme, rest, ok := strings.Cut(url, "://")
	if !ok {
		scheme, rest = "https", url
	}
	rest, query, _ := strings.Cut(rest, "?")
	host, path, slash := strings.Cut(rest, "/")
	t := Target{Scheme: scheme, Host: host, Port: 443, Method: method, Query: query}
	if scheme == "http" {
		t.Port = 80
	}
	if name, port, ok := strings.Cut(host, ":"); ok {
		t.Host = name
		fmt.Sscan(port, &t.Port)
	}
	if slash {
		t.Path = "/" + path
	}
	return t
}

func TestMatch(t *testing.T) {
	ix := index(t, connector(t, "hub://a/one",
		"GET a.example/v1/items bearer q=q,limit",  // op0
		"POST a.example/v1/items bearer",           // op1
		"GET a.example/v1/items/{id} bearer",       // op2
		"GET a.example/v1/items/{id}/parts/{part}", // op3
		"GET a.example/v1/items/special bearer",    // op4
		"GET a.example/files/{path...}",            // op5
		"* a.example/any/{x}",                      // op6
		"PUT a.example/any/{x} bearer",             // op7
		"GET a.example/back/{x}/end",               // op8
		"GET a.example/back/middle/other",          // op9
		"GET a.example/slash/",                     // op10
		"- open.example",                           // op11
		"GET open.example/only bearer",             // op12
		"GET *.wild.example/x",                     // op13
		"GET deep.wild.example/y",                  // op14
		"GET q.example/items ?api_key q=x",         // op15
		"GET port.example:8443/x bearer",           // op16
		"GET clear.example:80/x",                   // op17
		"GET a.example/v1/items bearer q=cursor",   // op18, the same template as op0
		"GET a.example/exact/{$}",                  // op19
		"- plain.example:80",                       // op20
		"GET rest.example/{path...}",               // op21
		"GET rest.example/a/{x}",                   // op22
	))
	for _, c := range []struct{ request, want string }{
		{"GET a.example/v1/items", "op0"},
		{"GET a.example/v1/items?q=1&limit=2&q=3", "op0"},
		{"GET a.example/v1/items?%71=1", "op0"},
		{"GET a.example/v1/items?cursor=1", "op18"},
		{"GET a.example/v1/items?q=1&cursor=1", ReasonQuery},
		{"GET a.example/v1/items?Q=1", ReasonQuery},
		{"GET a.example/v1/items?q=1;access_token=2", ReasonQuery},
		{"GET a.example/v1/items?q=%zz&%zz=1", ReasonQuery},
		{"GET a.example/v1/items?q=1&&limit=2", ReasonQuery},
		{"GET a.example/v1/items?access_token=x", ReasonQuery},
		{"POST a.example/v1/items?anything=1", "op1"},
		{"HEAD a.example/v1/items", ReasonOperation},
		{"OPTIONS a.example/v1/items", ReasonOperation},
		{"get a.example/v1/items", ReasonOperation},
		{"GET a.example/v1/items/", ReasonOperation},
		{"GET a.example/V1/items", ReasonOperation},
		{"GET a.example//v1/items", ReasonOperation},
		{"GET a.example/v1//items", ReasonOperation},
		{"GET a.example/v1/item%73", ReasonOperation},
		{"GET a.example/v1/items/42", "op2 id=42"},
		{"GET a.example/v1/items/~", "op2 id=~"},
		{"GET a.example/v1/items/*", "op2 id=*"},
		{"GET a.example/v1/items/a%20b", "op2 id=a%20b"},
		{"GET a.example/v1/items/..", ReasonOperation},
		{"GET a.example/v1/items/.", ReasonOperation},
		{"GET a.example/v1/items/%2e%2E", ReasonOperation},
		{"GET a.example/v1/items/.%2e", ReasonOperation},
		{"GET a.example/v1/items/a%2fb", ReasonOperation},
		{"GET a.example/v1/items/a%2Fb", ReasonOperation},
		{"GET a.example/v1/items/a%5cb", ReasonOperation},
		{"GET a.example/v1/items/a\\b", ReasonOperation},
		{"GET a.example/v1/items/%00", ReasonOperation},
		{"GET a.example/v1/items/a;b", ReasonOperation},
		{"GET a.example/v1/items/a%3bb", ReasonOperation},
		{"GET a.example/v1/items/%252e", ReasonOperation},
		{"GET a.example/v1/items/special", "op4"},
		{"GET a.example/v1/items/42/parts/7", "op3 id=42 part=7"},
		{"GET a.example/v1/items/42/parts/", ReasonOperation},
		{"GET a.example/v1/items/42/parts/7/8", ReasonOperation},
		{"GET a.example/files", ReasonOperation},
		{"GET a.example/files/", "op5 path="},
		{"GET a.example/files/a/b/c", "op5 path=a/b/c"},
		{"GET a.example/files/a/../c", ReasonOperation},
		{"GET a.example/files/a/%2e%2e/c", ReasonOperation},
		{"PATCH a.example/any/1", "op6 x=1"},
		{"PUT a.example/any/1", "op7 x=1"},
		{"GET a.example/back/middle/end", "op8 x=middle"},
		{"GET a.example/back/middle/other", "op9"},
		{"GET a.example/slash/", "op10"},
		{"GET a.example/slash", ReasonOperation},
		{"GET a.example/slash/x", ReasonOperation},
		{"GET a.example/exact/", "op19"},
		{"GET a.example/exact/x", ReasonOperation},
		{"OPTIONS a.example", ReasonOperation}, // an empty path
		{"DELETE open.example/whatever/there?is=1", "op11"},
		{"GET open.example/only", "op12"},
		{"http://open.example", ReasonHost},
		{"GET http://open.example:443/x", ReasonOperation},
		{"GET http://plain.example/x", "op20"},
		{"GET rest.example/a/b", "op22 x=b"},
		{"GET rest.example/a/", "op21 path=a/"},
		{"GET b.wild.example/x", "op13"},
		{"GET wild.example/x", ReasonHost},
		{"GET c.b.wild.example/x", ReasonHost},
		{"GET .wild.example/x", ReasonHost},
		{"GET deep.wild.example/y", "op14"},
		{"GET deep.wild.example/x", "op13"},
		{"GET q.example/items?x=1&api_key=fake", "op15"},
		{"GET q.example/items?API_KEY=fake", ReasonQuery},
		{"GET port.example:8443/x", "op16"},
		{"GET http://port.example:8443/x", ReasonOperation},
		{"GET port.example/x", ReasonHost},
		{"GET http://clear.example/x", "op17"},
		{"GET evila.example/v1/items", ReasonHost},
		{"GET a.example.evil.test/v1/items", ReasonHost},
		{"GET A.example/v1/items", ReasonHost},
	} {
		m, no := ix.Match(target(c.request))
		got := ""
		if no != nil {
			got = no.Reason
		} else {
			got = m.Operation.Name
			for _, p := range m.Params {
				got += " " + p.Name + "=" + p.Value
			}
			if again, no := ix.MatchOperation(m.Operation, target(c.request)); no != nil || again.Operation != m.Operation {
				t.Errorf("MatchOperation(%s, %s) = %v", m.Operation.Name, c.request, no)
			}
		}
		if got != c.want {
			t.Errorf("Match(%s) = %s, want %s", c.request, got, c.want)
		}
	}
}

func TestAnEmptyIndexAllowsNothing(t *testing.T) {
	ix := index(t)
	if _, no := ix.Match(target("GET a.example/")); no == nil || no.Reason != ReasonHost {
		t.Errorf("Match = %v, want %s", no, ReasonHost)
	}
}

// A denial is a sentence for an agent: what was denied, why, and what comes nearest.
func TestDenialsAreSentences(t *testing.T) {
	var lines []string
	for i := range 100 {
		lines = append(lines, fmt.Sprintf("GET a.example/other/%d", i))
	}
	lines = append(lines, "GET a.example/repos/{owner}/{repo}/issues bearer q=state,page", "POST a.example/user",
		"GET b.example/")
	ix := index(t, connector(t, "hub://a/one", lines...))
	for _, c := range []struct{ request, requested, granted, message string }{
		{"GET c.example/", "network:c.example:443", "network:a.example:443",
			"the host c.example:443 is not allowed: no installed connector names it; " +
				"allowed are a.example:443, b.example:443"},
		{"DELETE a.example/repos/x/y/issues", "operation:DELETE a.example/repos/x/y/issues",
			"operation:GET a.example/repos/{owner}/{repo}/issues",
			"DELETE /repos/x/y/issues is not allowed on a.example:443: no operation of an installed connector " +
				"is that request; nearest are GET /repos/{owner}/{repo}/issues, "},
		{"GET a.example/user", "operation:GET a.example/user", "operation:POST a.example/user",
			"GET /user is not allowed on a.example:443"},
		{"GET a.example/repos/x/y/issues?labels=1", "query:labels", "query:state",
			`the operation tool op100 does not declare the query name "labels"; declared are state, page`},
	} {
		_, no := ix.Match(target(c.request))
		if no == nil {
			t.Errorf("%s is allowed", c.request)
			continue
		}
		if no.Requested != c.requested || !strings.Contains(no.Error(), c.message) ||
			len(no.Granted) == 0 || no.Granted[0] != c.granted || len(no.Granted) > 32 {
			t.Errorf("%s is denied with %q, requested %q, granted %q", c.request, no, no.Requested, no.Granted)
		}
	}
}

func TestACredentialGoesBeforeNone(t *testing.T) {
	open := connector(t, "hub://a/open", "GET a.example/x")
	closed := connector(t, "hub://b/closed", "GET a.example/x bearer")
	for _, order := range [][]*Connector{{open, closed}, {closed, open}} {
		m, no := index(t, order...).Match(target("GET a.example/x"))
		if no != nil || m.Operation.Connector != closed {
			t.Errorf("Match = %v, %v, want the operation with the credential", m.Operation, no)
		}
	}
}

// The search is bounded: in a tree that is built for backtracking, it ends
// without a match and so allows nothing.
func TestBacktrackingIsBounded(t *testing.T) {
	var lines []string
	for i := range 14 {
		lines = append(lines, "GET a.example"+deep(14, i))
	}
	ix := index(t, connector(t, "hub://a/one", lines...))
	if _, no := ix.Match(target("GET a.example" + strings.Repeat("/a", 60))); no == nil {
		t.Error("a path of 60 segments is allowed")
	}
}

func deep(n, literal int) string {
	var b strings.Builder
	for i := range n {
		if i == literal {
			b.WriteString("/a")
			continue
		}
		fmt.Fprintf(&b, "/{v%d}", i)
	}
	return b.String() + "/end"
}

func TestHostsAndNamesAreFound(t *testing.T) {
	ix := index(t, connector(t, "hub://a/one", "GET b.example/x", "GET *.w.example:8443/x", "GET a.example/x"))
	if got, want := ix.Hosts(), []string{"*.w.example:8443", "a.example:443", "b.example:443"}; !slices.Equal(got, want) {
		t.Errorf("Hosts() = %q, want %q", got, want)
	}
	for _, c := range []struct {
		host string
		port uint16
		want bool
	}{{"x.w.example", 8443, true}, {"w.example", 8443, false}, {"a.example", 80, false}, {"a.example", 443, true}} {
		if got := ix.Covers(c.host, c.port); got != c.want {
			t.Errorf("Covers(%q, %d) = %v, want %v", c.host, c.port, got, c.want)
		}
	}
	if op, ok := ix.Operation("hub://a/one", "tool", "op2"); !ok || op.Hosts[0].Name != "a.example" {
		t.Errorf("Operation = %v, %v", op, ok)
	}
	if _, ok := ix.Operation("hub://a/two", "tool", "op2"); ok {
		t.Error("an operation of a connector that is not there is found")
	}
}

// Match has found an operation by host, port, method and path before it calls
// MatchOperation. A caller that names an operation calls MatchOperation alone, so
// it must check all of them itself.
func TestANamedOperationTakesOnlyItsOwnRequests(t *testing.T) {
	c := connector(t, "github://acme/named",
		"GET api.good.test/v1/items/{id} bearer", "GET *.wild.test:8443/v1/items bearer wild", "* any.good.test/v1/items")
	ix := index(t, c)
	ops := c.Tools[0].Operations
	for _, q := range []struct {
		op     int
		target string
		reason string // "": it is taken
	}{
		{0, "GET api.good.test/v1/items/7", ""},
		{0, "POST api.good.test/v1/items/7", "operation_not_matched"},
		{0, "get api.good.test/v1/items/7", "operation_not_matched"},
		{0, "GET api.good.test/v1/items", "operation_not_matched"},
		{0, "GET api.good.test/v1/items/..", "operation_not_matched"},
		{0, "GET api.good.test:8443/v1/items/7", "host_not_allowed"},
		{0, "GET other.good.test/v1/items/7", "host_not_allowed"},
		{1, "GET a.wild.test:8443/v1/items", ""},
		{1, "GET wild.test:8443/v1/items", "host_not_allowed"},
		{1, "GET a.b.wild.test:8443/v1/items", "host_not_allowed"},
		{1, "GET a.notwild.test:8443/v1/items", "host_not_allowed"},
		{1, "GET a.wild.test/v1/items", "host_not_allowed"},
		{2, "PATCH any.good.test/v1/items", ""},
		{2, "TRACE any.good.test/v1/items", "operation_not_matched"},
		{2, "patch any.good.test/v1/items", "operation_not_matched"},
	} {
		m, no := ix.MatchOperation(ops[q.op], target(q.target))
		switch {
		case q.reason == "" && (no != nil || m.Operation != ops[q.op]):
			t.Errorf("%s: %v, want a match", q.target, no)
		case q.reason != "" && (no == nil || no.Reason != q.reason):
			t.Errorf("%s: %v, want %s", q.target, no, q.reason)
		}
	}
}

// A denied request belongs to one connector, always the same one.
func TestADeniedRequestIsAttributedToTheNearestConnector(t *testing.T) {
	load := func(name, hosts, operations string) *Connector {
		c := must.Get(Load(fmt.Appendf(nil, `
			[connector]
			name = "github://acme/%s"
			version = "1.0.0"
			[capabilities.network]
			hosts = [%s]
			[provides]
			intents = ["x"]
			`, name, hosts), fmt.Appendf(nil, `{
			"schema_version": "aileron.connector.v1",
			"connector": {"fqn": "github://acme/%s", "version": "1.0.0"},
			"tools": [{"name": "%s", "operations": [%s]}]}`, name, name, operations)))(t)
		return c
	}
	issues := load("issues", `"api.test:443", "*.wild.test:443"`, `
		{"name": "list", "method": "GET", "path": "/issues/{id}", "hosts": ["api.test"]},
		{"name": "wild", "method": "GET", "path": "/w", "hosts": ["*.wild.test"]}`)
	admin := load("admin", `"api.test:443", "only.test:443"`, `
		{"name": "edit", "method": "POST", "path": "/issues/{id}", "hosts": ["api.test"]},
		{"name": "look", "method": "GET", "path": "/admin/{id}", "hosts": ["api.test"]},
		{"name": "only", "hosts": ["only.test"]}`)
	for _, order := range [][]*Connector{{issues, admin}, {admin, issues}} {
		ix := must.Get(NewIndex(order))(t)
		for _, c := range []struct {
			t    Target
			want string
		}{
			{Target{Host: "api.test", Port: 443, Method: "DELETE", Path: "/admin/7"}, "admin"},
			{Target{Host: "api.test", Port: 443, Method: "POST", Path: "/issues/7"}, "admin"},
			{Target{Host: "api.test", Port: 443, Method: "GET", Path: "/issues/7"}, "issues"},
			{Target{Host: "api.test", Port: 443}, "admin"},
			{Target{Host: "api.test", Port: 80, Method: "GET", Path: "/issues/7"}, "admin"},
			{Target{Host: "x.wild.test", Port: 443, Method: "PUT", Path: "/w"}, "issues"},
			{Target{Host: "x.wild.test", Port: 8443}, "issues"},
			{Target{Host: "only.test", Port: 443, Method: "GET", Path: "/"}, "admin"},
			{Target{Host: "evil.test", Port: 443, Method: "GET", Path: "/"}, ""},
			{Target{Host: "wild.test", Port: 443}, ""},
		} {
			got := ""
			if named := ix.Naming(c.t); named != nil {
				got = string(named.FQN)
			}
			if want := c.want; want != "" && got != "github://acme/"+want || want == "" && got != "" {
				t.Errorf("%s first: Naming(%+v) = %q, want %q", order[0].FQN, c.t, got, want)
			}
		}
	}
}

// Neither by its name nor under a wildcard.
func TestNoCredentialGoesToAHostWithAnUnderscore(t *testing.T) {
	_, err := Parse([]byte(`{"schema_version": "aileron.connector.v1",
		"connector": {"fqn": "github://a/b", "version": "1.0.0"},
		"tools": [{"name": "t", "operations": [{"name": "o", "method": "GET", "path": "/a", "hosts": ["my_x.b.test"],
		"credential": "bearer"}]}]}`))
	if err == nil || !strings.Contains(err.Error(), "underscore") {
		t.Errorf("a credential for my_x.b.test: %v", err)
	}
	ix := index(t, connector(t, "github://a/b", "GET *.b.test/a bearer wild", "GET my_open.b.test/a"))
	for request, want := range map[string]bool{"GET https://x.b.test:443/a": true, "GET https://my_x.b.test:443/a": false,
		"GET https://my_open.b.test:443/a": true} {
		m, no := ix.Match(target(request))
		if (no == nil) != want {
			t.Errorf("%s: %+v, %v", request, m, no)
		}
		if no != nil && (no.Reason != ReasonHost || !strings.Contains(no.Error(), "underscore") ||
			!strings.Contains(no.Error(), "aileron allow my_x.b.test")) {
			t.Errorf("%s: %v; want why, and what to do", request, no)
		}
	}
}
