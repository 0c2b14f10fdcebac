package spec

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
)

// previewed is a specification whose operation merge has this preview, beside operations that it may name.
func previewed(preview string) []byte {
	op := func(name, rest string) string {
		return `{"name":"` + name + `","hosts":["api.t.example"],` + rest + `}`
	}
	get := `"idempotency":"idempotent","method":"GET","path":"/repos/{owner}/pulls/{number}"`
	return []byte(`{"schema_version":"aileron.connector.v1","connector":{"fqn":"github://acme/t","version":"1.0.0"},
"tools":[{"name":"t","operations":[` + strings.Join([]string{
		op("merge", `"method":"PUT","path":"/repos/{owner}/pulls/{number}/merge","approval":"required",
			"inputs":[{"name":"how","in":"query"},{"name":"title"},
				{"name":"sha","type":"string","required":true},{"name":"part","required":true},
				{"name":"number","type":"integer","in":"path"}],"preview":`+
			preview),
		op("get", get+`,"inputs":[{"name":"number","type":"integer","in":"path"},
			{"name":"full","type":"boolean"}]`),
		op("post", `"method":"POST","path":"/x","idempotency":"idempotent"`),
		op("once", `"method":"GET","path":"/y/{a}"`),
		op("asks", `"method":"GET","path":"/z","idempotency":"idempotent","approval":"required"`),
		op("any", `"idempotency":"idempotent","method":"GET"`),
		op("socket", `"method":"GET","path":"/s","idempotency":"idempotent","upgrade":"websocket"`),
		op("twice", `"method":"GET","path":"/t1","idempotency":"idempotent"`),
	}, ",") + `]},{"name":"other","operations":[` +
		op("elsewhere", `"method":"HEAD","path":"/o","idempotency":"idempotent"`) + `]}]}`)
}

func TestAPreviewOnlyReads(t *testing.T) {
	const fine = `{"operation":"get","args":{"owner":"${path.owner}","number":"${path.number}"}`
	for _, c := range []struct{ preview, want string }{
		{fine + `}`, ""},
		{fine + `,"render":["title","user.login"]}`, ""},
		{`{"operation":"get","args":{"owner":"${query.how}","number":"7","full":"true"}}`, ""},
		{`{"operation":"get","args":{"owner":"${body.title}","number":"7"}}`, ""},
		{`{"operation":"elsewhere"}`, ""},
		{`[]`, "it is not an object"},
		{`{"args":{}}`, "preview.operation: it is missing"},
		{`{"operation":"none"}`, `"none" is no operation of this connector`},
		{`{"operation":"merge"}`, `"merge" is the operation itself`},
		{`{"operation":"post"}`, `"post" is no plain GET or HEAD`},
		{`{"operation":"once"}`, `"once" is not idempotent`},
		{`{"operation":"asks"}`, `"asks" asks for an approval of its own`},
		{`{"operation":"any"}`, `"any" cannot be called by name`},
		{`{"operation":"socket"}`, `"socket" is no plain GET or HEAD`},
		{`{"operation":"get","args":{"owner":"${path.owner}"}}`, "preview.args: number is missing, which get needs"},
		{fine[:len(fine)-1] + `,"more":"x"}}`, "preview.args.more: get has no such input"},
		{`{"operation":"get","args":{"owner":"${path.x}","number":"1"}}`, "names no input of this operation in that place"},
		{`{"operation":"get","args":{"owner":"${query.title}","number":"1"}}`, "names no input of this operation"},
		{`{"operation":"get","args":{"owner":"${env.HOME}","number":"1"}}`, "names no input of this operation"},
		{`{"operation":"get","args":{"owner":"x-${path.owner}","number":"1"}}`, "neither a text nor one input as a whole"},
		{`{"operation":"get","args":{"owner":"${path.owner}${path.owner}","number":"1"}}`, "neither a text nor one input"},
		{`{"operation":"get","args":{"owner":"x","number":"many"}}`, "preview.args.number: it is not an integer"},
		{`{"operation":"get","args":{"owner":1,"number":"1"}}`, "preview.args.owner: it is not a text"},
		{fine + `,"render":["@this"]}`, "preview.render[0]: it is not a plain gjson path"},
		{fine + `,"render":["a..b"]}`, "preview.render[0]: it is not a plain gjson path"},
		{fine + `,"run":"x"}`, "run"},
		{fine + `,"match":{"body.sha":"head.sha","path.number":"number"}}`, ""},
		{fine + `,"match":{"body.sha":"head.sha"}}`, ""},
		{fine + `,"match":{"body.title":"title"}}`, "preview.match.\"body.title\": it is no required input"},
		{fine + `,"match":{"query.sha":"head.sha"}}`, "it is no required input of this operation in that place"},
		{fine + `,"match":{"body.part":"part"}}`, "its type is neither string nor integer"},
		{fine + `,"match":{"sha":"head.sha"}}`, "is no input with a path"},
		{fine + `,"match":{"body.sha":7}}`, "is no input with a path"},
		{fine + `,"match":{"body.sha":"head.@this"}}`, "is not a plain gjson path"},
		{fine + `,"match":[]}`, "preview.match: it is not an object of at most 4 inputs"},
	} {
		_, err := Parse(previewed(c.preview))
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.preview, err, c.want)
		}
	}
}

func TestAPreviewIsCalledWithInputsOfTheRequest(t *testing.T) {
	preview := `{"operation":"get","args":{"owner":"${path.owner}","number":"${path.number}","full":"true"}}`
	c := must.Get(Parse(previewed(preview)))(t)
	p := c.Tools[0].Operations[0].Preview
	for _, s := range []struct{ owner, number, want string }{
		{"acme", "7", "/repos/acme/pulls/7?full=true"},
		{"a b?c#d", "7", "/repos/a%20b%3Fc%23d/pulls/7?full=true"},
		{"../x", "7", "args.owner: it has a slash"},
		{"acme", "7/merge", "args.number: it is not an integer"},
		{"acme", "", "args.number: it is not an integer"},
		{"", "7", "the request has no single path owner"},
	} {
		in, err := p.Invocation(func(in, name string) (string, bool) {
			value := map[string]string{"path.owner": s.owner, "path.number": s.number}[in+"."+name]
			return value, value != "" || name == "number"
		})
		got := fmt.Sprint(err)
		if err == nil {
			call, err := p.Operation.Call(in)
			if got = call.Target.Path + "?" + call.Target.Query; err != nil {
				got = err.Error()
			}
		}
		if !strings.Contains(got, s.want) {
			t.Errorf("%+v: %s", s, got)
		}
	}
}
