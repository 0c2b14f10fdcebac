package spec_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/spec"
)

// withOperations is a specification with operations, which have a name and hosts.
func withOperations(operations ...string) []byte {
	for i, op := range operations {
		operations[i] = `{"name":"op` + string(rune('a'+i)) + `","hosts":["mcp.example.org"],` + op + `}`
	}
	return []byte(`{"schema_version":"aileron.connector.v1","connector":{"fqn":"github://acme/m","version":"1.0.0"},` +
		`"tools":[{"name":"m","operations":[` + strings.Join(operations, ",") + `]}]}`)
}

func TestAnOperationOfMCPNamesToolsAndMethods(t *testing.T) {
	const post = `"method":"POST","path":"/mcp",`
	for _, c := range []struct {
		operations []string
		want       string // "": it is valid
	}{
		{[]string{post + `"mcp":{"tools":["search_*","get.me","*"]}`}, ""},
		{[]string{post + `"mcp":{"methods":["prompts/get"]},"inputs":[{"name":"key","in":"query"}]`}, ""},
		{[]string{post + `"mcp":{"tools":["a"]}`, post + `"mcp":{"tools":["b"]},"approval":"required"`}, ""},
		{[]string{post + `"mcp":{"tools":["a"]}`, `"method":"POST","path":"/mcps"`, `"method":"POST","path":"/{a}/{b}"`,
			`"method":"GET","path":"/{path...}"`}, ""},
		{[]string{post + `"mcp":{}`}, "it allows nothing"},
		{[]string{post + `"mcp":{"tools":[]}`}, "it allows nothing"},
		{[]string{post + `"mcp":{"tool":["x"]}`}, "unknown key"},
		{[]string{post + `"mcp":["x"]`}, "it is not an object"},
		{[]string{post + `"mcp":{"tools":["a*b"]}`}, "is neither the name of a tool nor the beginning"},
		{[]string{post + `"mcp":{"tools":["*_x"]}`}, "is neither the name of a tool nor the beginning"},
		{[]string{post + `"mcp":{"tools":["a b"]}`}, "is neither the name of a tool nor the beginning"},
		{[]string{post + `"mcp":{"tools":["a","a"]}`}, "appears twice"},
		{[]string{post + `"mcp":{"tools":[1]}`}, "it is not a string"},
		{[]string{post + `"mcp":{"methods":["tools/call"]}`}, "is not one of resources/read"},
		{[]string{`"method":"GET","path":"/mcp","mcp":{"tools":["a"]}`}, "it needs the method POST"},
		{[]string{`"method":"*","path":"/mcp","mcp":{"tools":["a"]}`}, "it needs the method POST"},
		{[]string{`"method":"POST","mcp":{"tools":["a"]}`}, "it needs a path"},
		{[]string{post + `"query":"any","mcp":{"tools":["a"]}`}, `it is "any", and mcp needs "declared"`},
		{[]string{post + `"inputs":[{"name":"x"}],"mcp":{"tools":["a"]}`}, "it is in the body"},
		{[]string{post + `"mcp":{"tools":["a"]}`, post + `"query":"any"`}, "it allows every body of the requests of opa"},
		{[]string{`"method":"POST","path":"/{a}/{b...}","mcp":{"tools":["a"]}`, `"method":"POST","path":"/{x}/{y...}"`},
			"it allows every body of the requests of opa"},
	} {
		got, err := spec.Parse(withOperations(slices.Clone(c.operations)...))
		switch {
		case c.want == "" && err != nil, c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: %v, want %q", c.operations, err, c.want)
		case c.want == "" && (!got.Tools[0].Operations[0].QueryDeclaredOnly || !got.Tools[0].Operations[0].JudgesBody()):
			t.Errorf("%s: it has any query, or judges no body", c.operations)
		}
	}
}

// A server may take a path in another case, or with a last slash, for the one whose bodies are judged.
func TestNoOperationBesideOneThatJudgesBodiesHasItsPath(t *testing.T) {
	judge := func(path string, hosts ...string) string {
		return `"method":"POST","path":"` + path + `","mcp":{"tools":["a"]},"hosts":["` + strings.Join(hosts, `","`) + `"]`
	}
	slashed := func(path string) string {
		return `"method":"POST","path":"` + path + `","hosts":["a.example.org"],"inputs":[{"name":"x","type":"string",` +
			`"required":true,"escaped_slash":true}]`
	}
	for _, c := range []struct {
		judging, beside string
		denied          bool
	}{
		{judge("/mcp", "a.example.org"), `"method":"POST","path":"/mcp/","hosts":["a.example.org"]`, true},
		{judge("/mcp/", "a.example.org"), `"method":"POST","path":"/mcp","hosts":["a.example.org"]`, true},
		{judge("/mcp", "a.example.org"), `"method":"POST","path":"/mcp/{$}","hosts":["a.example.org"]`, true},
		{judge("/mcp", "a.example.org"), `"method":"POST","path":"/MCP","hosts":["a.example.org"]`, true},
		{judge("/mcp", "a.example.org"), `"method":"*","path":"/{x}","hosts":["a.example.org"]`, true},
		{judge("/mcp", "a.example.org"), `"method":"POST","path":"/{server}/","hosts":["a.example.org"]`, true},
		{judge("/a/mcp", "a.example.org"), `"method":"POST","path":"/A/{path...}","hosts":["a.example.org"]`, true},
		{judge("/mcp", "a.example.org"), `"method":"POST","path":"/mcp/{path...}","hosts":["a.example.org"]`, true},
		{judge("/mcp", "a.example.org"), `"hosts":["a.example.org"]`, true},
		{judge("/{a}/mcp", "a.example.org"), `"method":"POST","path":"/x/{b}","hosts":["a.example.org"]`, true},
		{judge("/mcp", "a.example.org"), `"method":"POST","path":"/mcp/","hosts":["b.example.org","*.example.org"]`, true},
		{judge("/mcp", "*.example.org"), `"method":"POST","path":"/mcp/","hosts":["a.example.org"]`, true},
		{judge("/mcp", "*.example.org"), `"method":"POST","path":"/mcp/","hosts":["*.example.org"]`, true},
		// A server may read an escaped slash, in another case besides.
		{judge("/files/a/b", "a.example.org"), slashed("/files/{x}"), true},
		{judge("/files/a/b/c/", "a.example.org"), slashed("/FILES/{x}/c"), true},
		{judge("/a/b/c", "a.example.org"), slashed("/{x}/{y}"), true},

		{judge("/files/a/b", "a.example.org"), `"method":"POST","path":"/files/{x}","hosts":["a.example.org"]`, false},
		{judge("/files/a/b", "a.example.org"), slashed("/file/{x}"), false},
		{judge("/files/a/b", "a.example.org"), slashed("/files/{x}/c"), false},
		{judge("/files/a", "a.example.org"), slashed("/files/a/{x}"), false},
		{judge("/mcp", "a.example.org"), `"method":"GET","path":"/mcp/","hosts":["a.example.org"]`, false},
		{judge("/mcp", "a.example.org"), `"method":"POST","path":"/mcp2","hosts":["a.example.org"]`, false},
		{judge("/mcp", "a.example.org"), `"method":"POST","path":"/mcp/{x}","hosts":["a.example.org"]`, false},
		{judge("/mcp", "a.example.org"), `"method":"POST","path":"/x/{path...}","hosts":["a.example.org"]`, false},
		{judge("/mcp", "a.example.org"), `"method":"POST","path":"/mcp/","hosts":["b.example.org"]`, false},
		{judge("/mcp", "a.example.org"), `"method":"POST","path":"/mcp/","hosts":["a.example.org:8443"]`, false},
		{judge("/mcp", "*.example.org"), `"method":"POST","path":"/mcp/","hosts":["a.b.example.org"]`, false},
	} {
		const next = `},{"name":"two",`
		for _, both := range []string{c.judging + next + c.beside, c.beside + next + c.judging} {
			_, err := spec.Parse([]byte(`{"schema_version":"aileron.connector.v1",` +
				`"connector":{"fqn":"github://acme/m","version":"1.0.0"},` +
				`"tools":[{"name":"m","operations":[{"name":"one",` + both + `}]}]}`))
			switch {
			case c.denied && (err == nil || !strings.Contains(err.Error(), "it allows every body of the requests of ")):
				t.Errorf("%s beside %s: %v", c.beside, c.judging, err)
			case !c.denied && err != nil:
				t.Errorf("%s beside %s: %v", c.beside, c.judging, err)
			}
		}
	}
}

// A request that may be several operations matches the first, and names the others.
func TestOperationsThatJudgeBodiesShareARequest(t *testing.T) {
	const post = `"method":"POST","path":"/mcp","mcp":{"tools":["a"]}`
	other := strings.Replace(post, `"a"`, `"b"`, 1)
	c := must.Get(spec.Parse(withOperations(post, other, `"method":"GET","path":"/mcp"`)))(t)
	ix := must.Get(spec.NewIndex([]*spec.Connector{c}))(t)
	target := spec.Target{Scheme: "https", Host: "mcp.example.org", Port: 443, Method: "POST", Path: "/mcp"}
	m, no := ix.Match(target)
	if no != nil || m.Operation.Name != "opa" || len(m.Others) != 1 || m.Others[0].Name != "opb" {
		t.Errorf("Match = %v, %v", m, no)
	}
	if got := m.BodyGrants(); !slices.Equal(got, []string{"tool:a", "tool:b"}) {
		t.Errorf("BodyGrants = %q", got)
	}
	target.Query = "method=x"
	if _, no := ix.Match(target); no == nil || no.Reason != spec.ReasonQuery {
		t.Errorf("with a query: %v", no)
	}
	if ix.IsOpen("mcp.example.org", 443) {
		t.Error("the host is open")
	}
	if err := c.Tools[0].Operations[0].Callable(); err == nil || !strings.Contains(err.Error(), "a client of MCP") {
		t.Errorf("Callable = %v", err)
	}
}

// What an operation that judges bodies refuses is none of another connector on the same path.
func TestWhatIsJudgedIsOfOneConnector(t *testing.T) {
	const post = `"method":"POST","path":"/mcp"`
	judges := must.Get(spec.Parse(withOperations(post+`,"mcp":{"tools":["a"]}`, post+`,"mcp":{"tools":["b"]}`)))(t)
	other := must.Get(spec.Parse([]byte(strings.Replace(string(withOperations(post+`,"query":"any"`)), "acme/m",
		"other/m", 1))))(t)
	ix := must.Get(spec.NewIndex([]*spec.Connector{other, judges}))(t)
	target := spec.Target{Scheme: "https", Host: "mcp.example.org", Port: 443, Method: "POST", Path: "/mcp"}
	m, no := ix.Match(target)
	if no != nil || m.Operation.Connector != judges || len(m.Others) != 1 || m.Others[0].Name != "opb" {
		t.Errorf("Match = %v, %v", m, no)
	}
	target.Query = "x=1"
	if m, no := ix.Match(target); no == nil || no.Reason != spec.ReasonQuery {
		t.Errorf("with a query: %v, %v", m, no)
	}
}
