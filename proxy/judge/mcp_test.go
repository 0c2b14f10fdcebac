package judge_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/proxy/judge"
	"github.com/ALRubinger/aileron/spec"
	"github.com/ALRubinger/aileron/spec/content"
)

var searches = &spec.Operation{Tool: "t", Name: "mcp",
	MCP: &content.MCP{Tools: []string{"search_*", "get.me"}, Methods: []string{"prompts/get"}}}

// withoutMCP judges bodies of another kind.
var withoutMCP = &spec.Operation{Tool: "t", Name: "graphql",
	GraphQL: &content.GraphQL{Type: "query", Fields: []string{"*"}}}

// allows reports whether an operation allows all of a content.
func allows(content judge.Content, op *spec.Operation) bool {
	_, err := judge.Choose(content, []*spec.Operation{op})
	return err == nil
}

func jsonType() http.Header { return http.Header{"Content-Type": {"application/json"}} }

// v2 is the beginning of a message.
const v2 = `{"jsonrpc":"2.0",`

// callOf is a call of a tool, whose name stands in JSON as it is given.
func callOf(name string) string {
	return `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":` + name + `,"arguments":{"name":"x"}}}`
}

// decided is what is decided about a message.
type decided struct {
	allowed      bool
	method, tool string
}

func TestMessagesOfMCPAreJudgedByMethodAndTool(t *testing.T) {
	called := func(tool string, allowed bool) decided { return decided{allowed, "tools/call", tool} }
	for body, want := range map[string]decided{
		callOf(`"search_code"`):      called("search_code", true),
		callOf(`"get.me"`):           called("get.me", true),
		callOf(`"delete_repo"`):      called("delete_repo", false),
		callOf(`"delete\u005frepo"`): called("delete_repo", false),
		callOf(`"\u0073earch_code"`): called("search_code", true),
		callOf(`"Search_code"`):      called("Search_code", false),
		callOf(`"get.me2"`):          called("get.me2", false),
		// A notification may act at a careless server.
		`{"jsonrpc":"2.0","method":"tools\u002fcall","params":{"name":"delete_repo"}}`: called("delete_repo", false),
		// Nested keys of the same names are arguments.
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"arguments":{"method":"x","name":"delete_repo",` +
			`"params":{"name":"delete_repo"}},"name":"search_x"}}`: called("search_x", true),

		` {"jsonrpc" : "2.0", "id" : "a\u0000]}", "method" : "ping" , "params" : { } } ` + "\n": {true, "ping", ""},

		v2 + `"method":"notifications/initialized"}`:                    {true, "notifications/initialized", ""},
		v2 + `"id":-7,"method":"tools/list","params":{"cursor":"x"}}`:   {true, "tools/list", ""},
		v2 + `"id":3,"method":"prompts/get","params":{"name":"no"}}`:    {true, "prompts/get", ""},
		v2 + `"id":3,"method":"resources/read","params":{"uri":"x"}}`:   {false, "resources/read", ""},
		v2 + `"id":3,"method":"Tools/Call","params":{"name":"get.me"}}`: {false, "Tools/Call", ""},
		v2 + `"id":3,"result":{"roots":[]}}`:                            {true, "response", ""},
		v2 + `"id":3,"error":{"code":1,"message":"x"}}`:                 {true, "response", ""},
	} {
		content, err := judge.Read(searches, jsonType(), "", []byte(body))
		if err != nil {
			t.Errorf("%s: %v", body, err)
			continue
		}
		got := decided{allowed: allows(content, searches)}
		got.method, _ = content.Fields()["mcp_method"].(string)
		got.tool, _ = content.Fields()["mcp_tool"].(string)
		if got != want {
			t.Errorf("%s: %+v, want %+v", body, got, want)
		}
		if allows(content, withoutMCP) {
			t.Errorf("%s: an operation without mcp allows it", body)
		}
	}
}

func TestWhatServersMayReadDifferentlyIsUndecidable(t *testing.T) {
	utf16le := func(s string) string {
		var b []byte
		for _, u := range utf16.Encode([]rune(s)) {
			b = append(b, byte(u), byte(u>>8))
		}
		return string(b)
	}
	good := callOf(`"search_x"`)
	for body, want := range map[string]string{
		"": "one value of JSON", "null": "the message is not an object", `"x"`: "the message is not an object",
		"[" + good + "]": "it is a batch", "[]": "it is a batch",
		good + good: "one value of JSON", good + "\x00": "one value of JSON", "\ufeff" + good: "one value of JSON",
		utf16le(good): "one value of JSON", "//\n" + good: "one value of JSON",
		strings.ReplaceAll(good, `"`, `'`): "one value of JSON",
		callOf("\"search_\xff\""):          "not UTF-8",
		// Keys that are there twice, or look so to some.
		v2 + `"method":"tools/call","params":{"name":"search_x","name":"delete"}}`:            `"name" twice`,
		v2 + `"method":"tools/call","params":{"name":"search_x","n\u0061me":"delete"}}`:       `"name" twice`,
		v2 + `"method":"tools/call","params":{"name":"search_x","Name":"delete"}}`:            `"name" in another case`,
		v2 + `"method":"tools/call","params":{"name":"search_x"},"params":{"name":"delete"}}`: `the key "params" twice`,
		v2 + `"method":"tools/call","params":{"name":"search_x"},"PARAMS":{"name":"delete"}}`: `"params" in another case`,
		v2 + "\"method\":\"ping\",\"param\u017f\":{\"name\":\"delete\"}}":                     `"params" in another case`,
		v2 + `"method":"ping","method":"tools/call","params":{"name":"delete"}}`:              `the key "method" twice`,
		v2 + `"method":"ping","x":1,"x":2}`:                                                   "the message has a key",
		v2 + `"method":"ping","\ud800":1}`:                                                    "a broken escape",
		v2 + `"method":"ping"` + manyKeys(70) + `}`:                                           "more than 64 keys",
		v2 + `"method":"tools/call","params":["search_x"]}`:                                   "params is not an object",
		v2 + `"method":"tools/call"}`:                                                         "it has no params",
		v2 + `"method":"tools/call","params":null}`:                                           "params is not an object",
		callOf(`null`):                  "no name of a tool",
		callOf(`["search_x"]`):          "no name of a tool",
		callOf(`"search_\u0000delete"`): "no name of a tool",
		callOf(`"search_\ud800"`):       "no name of a tool",
		callOf(`"search_x\n"`):          "no name of a tool",
		callOf(`"search_é"`):            "no name of a tool",
		callOf(`""`):                    "no name of a tool",
		callOf(`"search_` + strings.Repeat("x", 122) + `"`):                         "no name of a tool",
		`{"jsonrpc":"2.0","id":null,"method":"ping"}`:                               "the id is neither",
		`{"jsonrpc":"2.0","id":1.5,"method":"ping"}`:                                "the id is neither",
		`{"jsonrpc":"2.0","id":{},"method":"ping"}`:                                 "the id is neither",
		`{"jsonrpc":"1.0","id":1,"method":"ping"}`:                                  "no message of JSON-RPC 2.0",
		`{"id":1,"method":"ping"}`:                                                  "no message of JSON-RPC 2.0",
		`{"jsonrpc":2.0,"id":1,"method":"ping"}`:                                    "no message of JSON-RPC 2.0",
		v2 + `"id":1}`:                                                              "no method in plain",
		v2 + `"id":1,"method":7}`:                                                   "no method in plain",
		v2 + `"id":1,"method":"ping\u0000"}`:                                        "no method in plain",
		v2 + `"id":1,"method":"tools/call","result":{},"params":{"name":"delete"}}`: "a request and a response",
		// Responses are always allowed, and a server may find a request in what is beside one.
		v2 + `"id":1,"result":{},"params":{"name":"delete"}}`:                  "a response with other keys",
		v2 + `"id":1,"result":{},"error":{}}`:                                  "a response with other keys",
		v2 + `"result":{}}`:                                                    "a response with other keys",
		v2 + `"x":1,"result":{}}`:                                              "a response with other keys",
		v2 + `"id":1,"result":{},"__proto__":{"method":"tools/call"}}`:         `the message has the key "__proto__"`,
		v2 + `"method":"ping","__pro\u0074o__":{"method":"tools/call"}}`:       `the message has the key "__proto__"`,
		v2 + `"method":"ping","constructor":{}}`:                               `the message has the key "constructor"`,
		v2 + `"method":"tools/call","params":{"name":"get.me","prototype":1}}`: `params has the key "prototype"`,
	} {
		content, err := judge.Read(searches, jsonType(), "", []byte(body))
		var undecidable *judge.Undecidable
		if !errors.As(err, &undecidable) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, %v, want %q", body, content, err, want)
		}
	}
}

// manyKeys are so many members of an object, after the first.
func manyKeys(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(`,"k` + strings.Repeat("x", i) + `":0`)
	}
	return b.String()
}

func TestFieldsOfTheRequestMustAgreeWithItsBody(t *testing.T) {
	plain := []string{"application/json"}
	for name, c := range map[string]struct {
		header http.Header
		want   string // "": it is decided
	}{
		"plain":          {http.Header{"Content-Type": plain}, ""},
		"with a charset": {http.Header{"Content-Type": {"Application/JSON; Charset=UTF-8"}}, ""},
		"quoted charset": {http.Header{"Content-Type": {`application/json;charset="utf-8"`}}, ""},
		"method and tool": {http.Header{"Content-Type": plain, "Mcp-Method": {"tools/call"}, "Mcp-Name": {"search_x"}},
			""},
		"none":            {http.Header{}, "no Content-Type"},
		"two":             {http.Header{"Content-Type": {"application/json", "application/json"}}, "no Content-Type"},
		"text":            {http.Header{"Content-Type": {"text/plain"}}, "not application/json"},
		"a form":          {http.Header{"Content-Type": {"multipart/form-data; boundary=x"}}, "not application/json"},
		"json and more":   {http.Header{"Content-Type": {"application/json, text/plain"}}, "not application/json"},
		"another charset": {http.Header{"Content-Type": {"application/json; charset=utf-16"}}, "other than charset"},
		"two charsets": {http.Header{"Content-Type": {"application/json; charset=utf-8; charset=utf-7"}},
			"other than"},
		"a long s":         {http.Header{"Content-Type": {"application/j\u017fon"}}, "not application/json"},
		"type of the hop":  {http.Header{"Content-Type": plain, "Connection": {"x, Content-Type"}}, "Connection names"},
		"tool of the hop":  {http.Header{"Content-Type": plain, "Connection": {"x", "mcp-name"}}, "Connection names"},
		"another path":     {http.Header{"Content-Type": plain, "X-Original-Url": {"/x"}}, `the field "X-Original-Url"`},
		"another verb":     {http.Header{"Content-Type": plain, "X-Http-Method-Override": {"PUT"}}, "Method-Override"},
		"another spelling": {http.Header{"Content-Type": plain, "Mcp_Name": {"delete"}}, `the field "Mcp_Name"`},
		"a connection":     {http.Header{"Content-Type": plain, "Connection": {"keep-alive, x-other"}}, ""},
		"gzip":             {http.Header{"Content-Type": plain, "Content-Encoding": {"gzip"}}, "Content-Encoding"},
		"identity":         {http.Header{"Content-Type": plain, "Content-Encoding": {"identity"}}, "Content-Encoding"},
		"another method":   {http.Header{"Content-Type": plain, "Mcp-Method": {"tools/list"}}, "Mcp-Method"},
		"another tool":     {http.Header{"Content-Type": plain, "Mcp-Name": {"delete"}}, "Mcp-Name"},
		"a tool twice":     {http.Header{"Content-Type": plain, "Mcp-Name": {"search_x", "delete"}}, "Mcp-Name"},
		"a tool in base64": {http.Header{"Content-Type": plain, "Mcp-Name": {"=?base64?ZGVsZXRl?="}}, "Mcp-Name"},
	} {
		_, err := judge.Read(searches, c.header, "", []byte(callOf(`"search_x"`)))
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// FuzzMCP holds the reading of keys to encoding/json: what is decided is what it reads, too.
func FuzzMCP(f *testing.F) {
	f.Add(callOf(`"search_x"`))
	f.Add(`{"jsonrpc":"2.0","id":"]","method":"ping","params":{"a":[{}, "\"}", 1e3, true]}}`)
	f.Fuzz(func(t *testing.T, body string) {
		content, err := judge.Read(searches, jsonType(), "", []byte(body))
		if err != nil {
			return
		}
		agrees(t, body, content)
	})
}

func BenchmarkMCP(b *testing.B) {
	body := []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"search_x","arguments":{"q":"` +
		strings.Repeat("x", 2000) + `"}}}`)
	b.ReportAllocs()
	for b.Loop() {
		must.Get(judge.Read(searches, jsonType(), "", body))(b)
	}
}
