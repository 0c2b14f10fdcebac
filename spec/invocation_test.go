package spec_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/spec"
)

const invoked = `{"schema_version": "aileron.connector.v1",
 "connector": {"fqn": "github://acme/tracker", "version": "1.2.0"},
 "tools": [{"name": "tracker", "operations": [
  {"name": "get", "method": "GET", "path": "/v1/projects/{project}/issues/{id}", "hosts": ["api.tracker.example"],
   "credential": "bearer", "inputs": [{"name": "project", "type": "string", "required": true},
    {"name": "id", "type": "integer", "required": true}, {"name": "fields", "type": "string"},
    {"name": "labels", "type": "array"}, {"name": "ratio", "type": "number"}, {"name": "open", "type": "boolean"},
    {"name": "any"}]},
  {"name": "create", "method": "POST", "path": "/v1/issues", "hosts": ["*.tracker.example", "api.tracker.example:8443"],
   "wildcard_credential": true, "credential": "bearer",
    "inputs": [{"name": "title", "type": "string", "required": true},
    {"name": "meta", "type": "object"}, {"name": "size", "type": "number"}, {"name": "notify", "in": "query"}]},
  {"name": "file", "method": "GET", "path": "/v1/files/{path...}", "hosts": ["files.tracker.example:80"]},
  {"name": "bot", "method": "GET", "path": "/bot{", "hosts": ["api.tracker.example"]},
  {"name": "post", "method": "POST", "path": "/v1/ping", "hosts": ["api.tracker.example"]},
  {"name": "wild", "method": "GET", "path": "/v1/x", "hosts": ["*.tracker.example"]},
  {"name": "all", "method": "*", "path": "/v1/x/y", "hosts": ["api.tracker.example"]},
  {"name": "host", "hosts": ["free.tracker.example"]}]}]}`

// invoke returns what the arguments make of an operation of invoked, and the error.
func invoke(t *testing.T, name, args string) (spec.Call, string) {
	t.Helper()
	text := strings.Replace(invoked, `"/bot{"`, `"/bot/{token}/send/{chat}", "credential":
		{"kind": "bearer", "inject": {"in": "path", "name": "token", "format": "{secret}"}}`, 1)
	c := must.Get(spec.Parse([]byte(text)))(t)
	index := must.Get(spec.NewIndex([]*spec.Connector{c}))(t)
	in, err := spec.ParseInvocation([]byte(`{"connector_fqn":"github://acme/tracker","tool":"tracker","operation":"` +
		name + `","args":` + args + `}`))
	if err != nil {
		return spec.Call{}, err.Error()
	}
	op, ok := index.Operation(in.Connector, in.Tool, in.Operation)
	if !ok {
		t.Fatalf("there is no operation %s", name)
	}
	call, err := op.Call(in)
	if err != nil {
		return spec.Call{}, err.Error()
	}
	if m, no := index.MatchOperation(op, call.Target); no != nil || m.Operation != op {
		t.Errorf("%s %s: the call is not the operation: %v", name, args, no)
	}
	return call, ""
}

func TestArgumentsMakeTheRequestOfTheirOperation(t *testing.T) {
	for _, c := range []struct{ name, args, want, body string }{
		{"get", `{"project":"a b","id":7}`, "GET https://api.tracker.example:443/v1/projects/a%20b/issues/7?", ""},
		{"get", `{"id":12345678901234567890,"project":"a:b@c,d","fields":"x&y=1+2;#?/ü\n","open":true}`,
			"GET https://api.tracker.example:443/v1/projects/a:b@c,d/issues/12345678901234567890?" +
				"fields=x%26y%3D1%2B2%3B%23%3F/%C3%BC%0A&open=true", ""},
		{"get", `{"project":"p","id":-1,"labels":["a","b c",3,false],"ratio":1.5e3,"any":"v"}`,
			"GET https://api.tracker.example:443/v1/projects/p/issues/-1?labels=a&labels=b%20c&labels=3&labels=false" +
				"&ratio=1.5e3&any=v", ""},
		{"create", `{"title":"<a> \"q\" ü\u0000","meta":{"b":[1,null,{"c":1.0}],"a":true},"notify":"x"}`,
			"POST https://api.tracker.example:8443/v1/issues?notify=x",
			`{"meta":{"a":true,"b":[1,null,{"c":1.0}]},"title":"<a> \"q\" ü\u0000"}`},
		{"file", `{"path":"a/b c/d.txt"}`, "GET http://files.tracker.example:80/v1/files/a/b%20c/d.txt?", ""},
		{"bot", `{"chat":"1"}`, "GET https://api.tracker.example:443/bot/credential/send/1?", ""},
		{"post", `{}`, "POST https://api.tracker.example:443/v1/ping?", ""},
	} {
		call, err := invoke(t, c.name, c.args)
		got := call.Target.Method + " " + call.Target.Scheme + "://" +
			spec.HostPattern{Name: call.Target.Host, Port: call.Target.Port}.String() + call.Target.Path + "?" +
			call.Target.Query
		if err != "" || got != c.want || string(call.Body) != c.body {
			t.Errorf("%s %s is %s with %s, %s; want %s with %s", c.name, c.args, got, call.Body, err, c.want, c.body)
		}
	}
}

func TestArgumentsThatAreNotDeclaredMakeNoRequest(t *testing.T) {
	const p = `"project":"p",`
	deep := strings.Repeat("[", 40) + strings.Repeat("]", 40)
	for _, c := range []struct{ name, args, want string }{
		{"get", `{"project":"p"}`, "args.id: it is missing"},
		{"get", `{}`, "args.project: it is missing"},
		{"get", `{` + p + `"id":7,"other":1}`, "args.other: the operation has no such input"},
		{"get", `{` + p + `"id":7,"Fields":"x"}`, "args.Fields: the operation has no such input"},
		{"get", `{` + p + `"id":7,"\u001b[2J":"x"}`, `args."\x1b[2J": the operation has no such input`},
		{"get", `{` + p + `"id":"7"}`, "args.id: it is not an integer"},
		{"get", `{` + p + `"id":7.0}`, "args.id: it is not an integer"},
		{"get", `{` + p + `"id":7e0}`, "args.id: it is not an integer"},
		{"get", `{` + p + `"id":null}`, "args.id: it is not an integer"},
		{"get", `{"project":["p"],"id":7}`, "args.project: it is not a string"},
		{"get", `{` + p + `"id":7,"open":"true"}`, "args.open: it is not a boolean"},
		{"get", `{` + p + `"id":7,"ratio":true}`, "args.ratio: it is not a number"},
		{"get", `{` + p + `"id":7,"labels":"a"}`, "args.labels: it is not an array"},
		{"get", `{` + p + `"id":7,"labels":[["a"]]}`, "args.labels[0]: its place takes strings"},
		{"get", `{` + p + `"id":7,"labels":[{"a":1}]}`, "args.labels[0]: its place takes strings"},
		{"get", `{` + p + `"id":7,"any":null}`, "args.any: it is null"},
		{"get", `{` + p + `"id":7,"fields":"\ud800"}`, "args.fields: it has a NUL or a broken escape"},
		{"get", `{` + p + `"id":7,"fields":"a\u0000"}`, "args.fields: it has a NUL or a broken escape"},
		{"get", `{` + p + `"id":7,"id":8}`, "args.id: duplicate key"},
		{"get", `{` + p + `"id":NaN}`, "it is not JSON"},
		{"get", `{` + p + `"id":Infinity}`, "it is not JSON"},
		{"get", `[1]`, "args: it is not an object"},
		{"get", `null`, "args: it is not an object"},
		{"get", `{` + p + `"id":7,"any":` + deep + `}`, "nested more than"},
		{"get", `{` + p + `"id":7,"fields":"` + strings.Repeat("x", 40_000) + `"}`, "of more than 32768 bytes"},
		{"get", `{` + p + `"id":7,"fields":"` + strings.Repeat("x", 10<<20) + `"}`, "larger than"},
		{"create", `{"title":"t","meta":[1]}`, "args.meta: it is not an object"},
		{"create", `{"title":"t","meta":{"a":1,"a":2}}`, "args.meta.a: duplicate key"},
		{"bot", `{"chat":"1","token":"mine"}`, "args.token: the operation has no such input"},
		{"bot", `{}`, "args.chat: it is missing, and is a part of the path"},
		{"file", `{"path":"a//b"}`, "args.path: it is empty, or has an empty segment"},
		{"file", `{"path":"/etc"}`, "args.path: it is empty, or has an empty segment"},
		{"file", `{"path":"a/../b"}`, "args.path: it is a dot segment"},
		{"file", `{"path":["a"]}`, "args.path: it is no single value"},
		{"wild", `{}`, "the operation names no single host"},
		{"all", `{}`, "the operation names no single method"},
		{"host", `{}`, "the operation names no"},
	} {
		call, err := invoke(t, c.name, c.args)
		if !strings.Contains(err, c.want) || len(err) > 400 || call.Target.Path != "" {
			t.Errorf("%s %.200s: %.400s, want %s", c.name, c.args, err, c.want)
		}
	}
	for _, value := range []string{"", ".", "..", "a/b", "../x", "a\\\\b", "a;b", "%2e%2e", "a%2fb", "a\\u0000", "a\\n",
		"\\u202e", "\\ud800"} {
		if _, err := invoke(t, "get", `{"project":"`+value+`","id":7}`); !strings.Contains(err, "args.project: it ") {
			t.Errorf("the project %q: %s", value, err)
		}
	}
}

func TestAnInvocationIsReadStrictly(t *testing.T) {
	const head = `{"connector_fqn":"github://acme/tracker","tool":"tracker","operation":"get"`
	if in, err := spec.ParseInvocation([]byte(head + "}")); err != nil || in.Tool != "tracker" {
		t.Errorf("without args: %+v, %v", in, err)
	}
	for text, want := range map[string]string{
		"": "too early", head: "too early", head + `}{}`: "after the end", `[]`: "it is not an object",
		`"x"`:                 "not an object",
		head + `,"tool":"x"}`: "tool: duplicate key", head + `,"Args":{}}`: `Args: unknown key; use "args"`,
		head + `,"method":"DELETE"}`: "method: unknown key", `{"tool":"a","operation":"b"}`: "connector_fqn: it is missing",
		`{"connector_fqn":1,"tool":"a","operation":"b"}`:           "connector_fqn: it is not a string",
		head + ",\"args\":{\"a\":\"\xff\"}}":                       "it is not UTF-8",
		head + `,"args":{"` + strings.Repeat("x", 1000) + `":1,}}`: "it is not JSON",
	} {
		if _, err := spec.ParseInvocation([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.80s: %v, want %s", text, err, want)
		}
	}
}

// What an action composes becomes the same request as what a client sends.
func TestComposedArgumentsAreThoseOfAClient(t *testing.T) {
	call, err := spec.ParseActionCall([]byte(
		`{"action":"report","args":{"title":"t","meta":{"n":[1,1.50,true,null,{"x":"y"}]},"size":1e3}}`))
	if err != nil || call.Action != "report" {
		t.Fatalf("it is %+v, %v", call, err)
	}
	c := must.Get(spec.Parse([]byte(strings.Replace(invoked, `"/bot{"`, `"/bot"`, 1))))(t)
	op := c.Tools[0].Operations[1]
	for _, size := range []any{call.Args["size"], float64(1000), int64(1000), 1000} {
		call.Args["size"] = size
		in := must.Get(spec.NewInvocation("github://acme/tracker", "tracker", "create", call.Args))(t)
		made, err := op.Call(in)
		want := `{"meta":{"n":[1,1.50,true,null,{"x":"y"}]},"size":` + map[bool]string{true: "1e3", false: "1000"}[size ==
			json.Number("1e3")] + `,"title":"t"}`
		if err != nil || string(made.Body) != want {
			t.Errorf("it makes %s, %v; want %s", made.Body, err, want)
		}
	}
	deep := any("x")
	for range 40 {
		deep = []any{deep}
	}
	for name, v := range map[string]any{"a time": time.Time{}, "NaN": math.NaN(), "a broken text": "\xff",
		"a broken number": json.Number("1;2"), "depth": deep, "bytes": []byte("x"), "in a list": []any{struct{}{}},
		"in a map": map[string]any{"a": make(chan int)}} {
		if _, err := spec.NewInvocation("a", "b", "c", map[string]any{"v": v}); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}

func TestACallOfAnActionIsReadStrictly(t *testing.T) {
	for text, want := range map[string]string{
		`{"args":{}}`:                             "action: it is missing",
		`{"action":"a","args":[]}`:                "args: it is not an object",
		`{"action":"a","args":null}`:              "args: it is not an object",
		`{"action":"a","Action":"b"}`:             "Action",
		`{"action":"a","args":{},"x":1}`:          "x",
		`{"action":"a","args":{"b":1},"args":{}}`: "args: duplicate key",
		`{"action":"a"} 1`:                        "after the end",
		"":                                        "ends too early",
	} {
		if call, err := spec.ParseActionCall([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s is %+v, %v; want %s", text, call, err, want)
		}
	}
	if call, err := spec.ParseActionCall([]byte(`{"action":"a"}`)); err != nil || call.Args == nil {
		t.Errorf("without args it is %+v, %v", call, err)
	}
}
