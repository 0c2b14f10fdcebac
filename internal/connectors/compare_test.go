package connectors

import (
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/spec"
)

func TestAChangeOfWhatAsksIsTold(t *testing.T) {
	load := func(approval string) *spec.Connector {
		return must.Get(spec.Parse([]byte(`{"schema_version":"aileron.connector.v1",
		"connector":{"fqn":"github://acme/x","version":"1.0.0"},"tools":[{"name":"x","operations":[{"name":"push",
		"method":"PUT","path":"/b/{branch}/{at}","hosts":["a.example"],"approval":` + approval + `}]}]}`)))(t)
	}
	const (
		none = `"none"`
		all  = `"required"`
		main = `{"when":{"path.branch":["main"]}}`
		two  = `{"when":{"path.branch":["main","dev"]}}`
		at   = `{"when":{"path.branch":["main"],"path.at":["x"]}}`
		less = "asks less, or about other requests: push\n"
		more = "asks more: push\n"
	)
	for _, c := range []struct{ was, is, want string }{
		{none, all, more}, {all, none, less}, {all, main, less}, {main, all, more}, {none, main, more}, {main, none, less},
		{main, two, more}, {two, main, less}, {main, at, less}, {at, main, more}, {two, at, less}, {at, two, more},
		{main, main, ""}, {`{"when":{"path.at":["x"]}}`, main, less},
	} {
		var out strings.Builder
		PrintChanges(&out, load(c.was), load(c.is), 80)
		said := out.String()
		if strings.Contains(said, less) != (c.want == less) || strings.Contains(said, more) != (c.want == more) ||
			strings.Contains(said, "changed operations: push") != (c.want != "") {
			t.Errorf("from %s to %s it is %q", c.was, c.is, said)
		}
	}
	if got := Traits(load(two).Tools[0].Operations[0]); got != "asks when path.branch is main or dev" {
		t.Errorf("it is described as %q", got)
	}
	if j := DescribeConnector(load(two)).Operations[0]; j.Approval != "when" || len(j.ApprovalWhen["path.branch"]) != 2 {
		t.Errorf("in JSON it is %+v", j)
	}
}

// A version whose requests may have more names, or another body, does not grant the same.
func TestAChangeOfRequestsIsTold(t *testing.T) {
	load := func(more string) *spec.Connector {
		return must.Get(spec.Parse([]byte(`{"schema_version":"aileron.connector.v1",
		"connector":{"fqn":"github://acme/x","version":"1.0.0"},"tools":[{"name":"x","operations":[{"name":"push",
		"method":"PUT","path":"/b","hosts":["a.example"],"query":"declared"` + more + `}]}]}`)))(t)
	}
	const (
		plain  = `,"inputs":[{"name":"a","in":"query"}]`
		two    = `,"inputs":[{"name":"a","in":"query"},{"name":"force","in":"query"}]`
		commas = `,"inputs":[{"name":"a","in":"query","type":"array","explode":false}]`
		open   = `,"inputs":[{"name":"a","in":"query","type":"object","style":"deepObject"}]`
		closed = `,"inputs":[{"name":"a","in":"query","style":"deepObject","schema":{"type":"object",
			"properties":{"k":{}},"additionalProperties":false}}]`
	)
	meter := func(at string) string { return `,"meter":[{"name":"tokens","source":"response.body.` + at + `"}]` }
	for _, c := range []struct{ was, is, want string }{
		{plain, two, "grants more, names in the query: push force\n"}, {two, plain, "changed operations: push\n"},
		{plain, commas, "names in the query: push a\n"}, {plain, open, "names in the query: push a\n"},
		{closed, open, "names in the query: push a\n"}, {"", `,"body":"form"`, "another kind of body: push\n"},
		{"", `,"content_type":"application/merge-patch+json"`, "another kind of body: push\n"},
		{`,"body":"form"`, `,"body":"multipart"`, "another kind of body: push\n"},
		{meter("a"), "", "counts no longer, or elsewhere, for budgets: push tokens\n"},
		{meter("a"), meter("b"), "counts no longer, or elsewhere, for budgets: push tokens\n"},
		{"", meter("a"), "grants the same\n"}, {meter("a"), meter("a"), "grants the same\n"},
		{two, two, "grants the same\n"}, {closed, closed, "grants the same\n"},
	} {
		var out strings.Builder
		was, is := load(c.was), load(c.is)
		PrintChanges(&out, was, is, 80)
		same := c.want == "grants the same\n"
		if !strings.Contains(out.String(), c.want) || GrantsSame(was, is) != same {
			t.Errorf("from %s to %s it is %q, the same: %v", c.was, c.is, out.String(), !same)
		}
	}
}
