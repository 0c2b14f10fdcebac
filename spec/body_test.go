package spec_test

import (
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"slices"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/spec"
)

// encoded has an operation for each kind of body.
const encoded = `{"schema_version": "aileron.connector.v1",
 "connector": {"fqn": "github://acme/shop", "version": "1.0.0"},
 "tools": [{"name": "shop", "operations": [
  {"name": "customers.create", "method": "POST", "path": "/v1/customers", "hosts": ["api.shop.example"], "body": "form",
   "inputs": [{"name": "email", "type": "string"}, {"name": "metadata", "type": "object", "style": "deepObject"},
    {"name": "expand", "type": "array", "style": "deepObject"}, {"name": "tags", "type": "array", "explode": false},
    {"name": "locales[]", "type": "array"}, {"name": "dry", "in": "query", "type": "boolean"}]},
  {"name": "charges.list", "method": "GET", "path": "/v1/charges", "hosts": ["api.shop.example"],
   "inputs": [{"name": "expand[]", "type": "array"}, {"name": "created", "style": "deepObject"},
    {"name": "sort", "style": "deepObject", "schema": {"type": "object", "properties": {"by": {"type": "string"}},
     "additionalProperties": false}}, {"name": "fields", "type": "array", "explode": false},
    {"name": "ids", "type": "array", "style": "pipeDelimited", "explode": false},
    {"name": "filter[name]"}]},
  {"name": "orders.create", "method": "POST", "path": "/v1/orders", "hosts": ["api.shop.example"],
   "content_type": "application/vnd.api+json", "inputs": [{"name": "items", "required": true, "schema": {
    "type": "array", "items": {"type": "object", "required": ["price"], "properties": {
     "price": {"type": "integer"}, "kind": {"type": "string", "enum": ["a", "b"]},
     "note": {"type": ["string", "null"]}}}}}]},
  {"name": "files.upload", "method": "POST", "path": "/v1/files", "hosts": ["api.shop.example"], "body": "multipart",
   "inputs": [{"name": "purpose", "type": "string"}, {"name": "file", "type": "file", "required": true},
    {"name": "meta", "type": "object"}]},
  {"name": "files.add", "method": "POST", "path": "/v1/files/add", "hosts": ["api.shop.example"], "body": "multipart",
   "inputs": [{"name": "files", "type": "files", "required": true}, {"name": "link", "style": "deepObject"},
    {"name": "tags", "type": "array"}]},
  {"name": "notes.put", "method": "PUT", "path": "/v1/notes/{id}", "hosts": ["api.shop.example"], "body": "text",
   "content_type": "text/markdown", "inputs": [{"name": "text", "type": "string", "required": true}]},
  {"name": "images.put", "method": "PUT", "path": "/v1/images/{id}", "hosts": ["api.shop.example"], "body": "raw",
   "inputs": [{"name": "image", "type": "file", "required": true}]},
  {"name": "orders.drop", "method": "DELETE", "path": "/v1/orders/{id}.json", "hosts": ["api.shop.example"],
   "inputs": [{"name": "notify", "type": "boolean"}, {"name": "reason", "type": "string", "in": "body"}]},
  {"name": "list.put", "method": "PUT", "path": "/v1/list", "hosts": ["api.shop.example"], "body": "raw",
   "content_type": "application/json", "inputs": [{"name": "body", "type": "array", "required": true}]}]}]}`

// shop returns what the arguments make of an operation of encoded, and the error.
func shop(t *testing.T, name, args string) (call spec.Call, mistake string) {
	t.Helper()
	c := must.Get(spec.Parse([]byte(encoded)))(t)
	index := must.Get(spec.NewIndex([]*spec.Connector{c}))(t)
	in, err := spec.ParseInvocation([]byte(`{"connector_fqn":"github://acme/shop","tool":"shop","operation":"` +
		name + `","args":` + args + `}`))
	if err != nil {
		return call, err.Error()
	}
	op, ok := index.Operation(in.Connector, in.Tool, in.Operation)
	if !ok {
		t.Fatalf("there is no operation %s", name)
	}
	if call, err = op.Call(in); err != nil {
		return call, err.Error()
	}
	if _, no := index.MatchOperation(op, call.Target); no != nil {
		t.Errorf("%s %s: its own request is denied: %v", name, args, no)
	}
	return call, ""
}

func TestBodiesOfACall(t *testing.T) {
	t.Parallel()
	const form = "application/x-www-form-urlencoded"
	for _, w := range []struct{ name, args, query, body, contentType string }{
		{"customers.create", `{"email":"a@b.example","metadata":{"a":"b"},"expand":["x"],"tags":["p","q"],"dry":true,
			"locales[]":["de","fr"]}`, "dry=true", "email=a%40b.example&metadata%5Ba%5D=b&expand%5B0%5D=x&tags=p%2Cq&" +
			"locales%5B%5D=de&locales%5B%5D=fr", form},
		{"customers.create", `{}`, "", "", form},
		{"charges.list", `{"expand[]":["a","b"],"created":{"gte":1},"sort":{"by":"x"},"fields":["a","b"],"ids":[1,2],
			"filter[name]":"n"}`, "expand%5B%5D=a&expand%5B%5D=b&created%5Bgte%5D=1&sort%5Bby%5D=x&fields=a,b&ids=1%7C2&" +
			"filter%5Bname%5D=n", "", ""},
		{"charges.list", `{"created":7}`, "created=7", "", ""},
		{"orders.create", `{"items":[{"price":1,"kind":"a","note":null,"more":[]}]}`, "",
			`{"items":[{"kind":"a","more":[],"note":null,"price":1}]}`, "application/vnd.api+json"},
		{"notes.put", `{"id":"1","text":"# ü\n"}`, "", "# ü\n", "text/markdown"},
		{"images.put", `{"id":"1","image":{"base64":"/wA=","filename":"a.png"}}`, "", "\xff\x00",
			"application/octet-stream"},
		{"images.put", `{"id":"1","image":"text"}`, "", "text", "application/octet-stream"},
		{"orders.drop", `{"id":"7","notify":true,"reason":"x"}`, "notify=true", `{"reason":"x"}`, "application/json"},
		{"orders.drop", `{"id":"7"}`, "", "", ""}, // whose body is seldom asked for
		{"list.put", `{"body":[1,{"a":"<"}]}`, "", `[1,{"a":"<"}]`, "application/json"},
	} {
		call, err := shop(t, w.name, w.args)
		if err != "" || call.Target.Query != w.query || string(call.Body) != w.body || call.ContentType != w.contentType {
			t.Errorf("%s %s: %q, body %q of %s, %s", w.name, w.args, call.Target.Query, call.Body, call.ContentType, err)
		}
	}
}

func TestArgumentsThatNoBodyHas(t *testing.T) {
	t.Parallel()
	for _, w := range []struct{ name, args, want string }{
		{"customers.create", `{"metadata":{"a]=1&admin[":"b"}}`, `args.metadata."a]=1&admin[": the key has a bracket`},
		{"customers.create", `{"metadata":{"a":{"b":null}}}`, "args.metadata.a.b: it is null"},
		{"customers.create", `{"tags":["a,b"]}`, "args.tags[0]: it has the character that separates"},
		{"customers.create", `{"admin":true}`, "args.admin: the operation has no such input"},
		{"customers.create", `{"metadata[admin]":true}`, `args."metadata[admin]": the operation has no such input`},
		{"charges.list", `{"sort":{"of":"x"}}`, "args.sort.of: there is no such property"},
		{"orders.create", `{"items":[{"price":1},{"price":"1"}]}`, "args.items[1].price: it is not an integer"},
		{"orders.create", `{"items":[{"kind":"a"}]}`, "args.items[0].price: it is missing"},
		{"orders.create", `{"items":[{"price":1,"kind":"c"}]}`, "args.items[0].kind: it is not one of a, b"},
		{"orders.create", `{"items":{}}`, "args.items: it is not an array"},
		{"files.upload", `{"file":{"text":"x","filename":"a\r\nX: y"}}`, "args.file.filename: it has a control character"},
		{"files.upload", `{"file":{"text":"x","filename":"../x"}}`, "args.file.filename: it has a slash"},
		{"files.upload", `{"file":{"text":"x","content_type":"a/b\r\nX: y"}}`, "args.file.content_type: it is not a media"},
		{"files.upload", `{"file":{"text":"x","content_type":"a"}}`, "args.file.content_type: it is not a media"},
		{"files.upload", `{"file":{"text":"x","base64":"eA=="}}`, "args.file: a file has either text or base64"},
		{"files.upload", `{"file":{"base64":"e A"}}`, "args.file.base64: it is not base64"},
		{"files.upload", `{"file":{"path":"/etc/passwd"}}`, "args.file.path: a file has text or base64"},
		{"files.upload", `{"file":7}`, "args.file: it is not a file"},
		{"files.add", `{"files":"x"}`, "args.files: it is not a list of files"},
		{"files.add", `{"files":["x",7]}`, "args.files: it is not a list of files"},
		{"files.add", `{"files":["x",{"base64":"e A"}]}`, "args.files[1].base64: it is not base64"},
		{"files.add", `{"files":[],"link":{"a]":1}}`, `args.link."a]": the key has a bracket`},
		{"files.add", `{"files":[],"link":{"a":{"b\"; filename=\"c":1}}}`,
			"args.link.a.\"b\\\"; filename=\\\"c\": the key has"},
		{"files.add", `{"files":[],"link":{"a%22":1}}`, `args.link."a%22": the key has one of`},
		{"files.add", `{"files":[],"link":{"a\\":1}}`, `args.link."a\\": the key has one of`},
		{"files.add", `{"files":[],"link":{"a\r\nX: y":1}}`, `args.link."a\r\nX: y": the key has a control`},
		{"files.add", `{"files":[],"link":{"a":null}}`, "args.link.a: it is null"},
		{"files.add", `{"files":[],"tags":[` + strings.Repeat("1,", 40_000) + `1]}`, "args: they make a body of more than"},
		{"notes.put", `{"id":"1","text":"\u0000"}`, "args.text: it has a NUL"},
	} {
		if _, err := shop(t, w.name, w.args); !strings.HasPrefix(err, w.want) {
			t.Errorf("%s %s: %s, want %s", w.name, w.args, err, w.want)
		}
	}
}

// Files of one input are parts of its name. What nests in an input of the style deepObject is a part for each value.
func TestListsInAMultipartBody(t *testing.T) {
	t.Parallel()
	call, err := shop(t, "files.add", `{"files":["one",{"base64":"/wA=","filename":"b.png"}],"tags":["x",2],
		"link":{"create":true,"metadata":{"a ü":"b"},"of":["p","q"]}}`)
	_, params, _ := mime.ParseMediaType(call.ContentType)
	var got []string
	for r := multipart.NewReader(strings.NewReader(string(call.Body)), params["boundary"]); err == ""; {
		p, end := r.NextPart()
		if end != nil {
			break
		}
		got = append(got, fmt.Sprintf("%s %q %q", p.FormName(), p.FileName(), must.Get(io.ReadAll(p))(t)))
	}
	want := []string{`files "files" "one"`, `files "b.png" "\xff\x00"`, `link[create] "" "true"`,
		`link[metadata][a ü] "" "b"`, `link[of][0] "" "p"`, `link[of][1] "" "q"`, `tags "" "x"`, `tags "" "2"`}
	if err != "" || !slices.Equal(got, want) {
		t.Errorf("%s\n%q\nwant %q", err, got, want)
	}
	if call, err := shop(t, "files.add", `{"files":[]}`); err != "" || strings.Contains(string(call.Body), "name=") {
		t.Errorf("no files: %s %q", err, call.Body)
	}
}

// A name of a file, a value or a content that looks like the end of a part is none.
func TestPartsOfAMultipartBody(t *testing.T) {
	t.Parallel()
	args := `{"purpose":"a\r\n--x","file":{"text":"--aileron\r\n","filename":"my \"x\"; name=evil ü.txt"},"meta":{"a":1}}`
	call, err := shop(t, "files.upload", args)
	kind, boundary, ok := strings.Cut(call.ContentType, "; boundary=")
	if err != "" || kind != "multipart/form-data" || !ok || strings.Count(string(call.Body), boundary) != 4 {
		t.Fatalf("%s: %s in %q", err, call.ContentType, call.Body)
	}
	want := strings.NewReplacer("\n", "\r\n", "~", "--"+boundary, "{crlf}", "\r\n").Replace(`~
Content-Disposition: form-data; name="purpose"

a{crlf}--x
~
Content-Disposition: form-data; name="file"; filename="my %22x%22; name=evil ü.txt"
Content-Type: text/plain; charset=utf-8

--aileron{crlf}
~
Content-Disposition: form-data; name="meta"
Content-Type: application/json

{"a":1}
~--
`)
	if string(call.Body) != want {
		t.Errorf("got\n%s\nwant\n%s", call.Body, want)
	}
	if again, _ := shop(t, "files.upload", args); again.ContentType != call.ContentType {
		t.Errorf("the same call is %s and %s: an approval would be for neither", call.ContentType, again.ContentType)
	}
}

// The parameters of an input with keys in brackets pass on the wire, and no others.
func TestQueryNamesInBrackets(t *testing.T) {
	t.Parallel()
	c := must.Get(spec.Parse([]byte(encoded)))(t)
	index := must.Get(spec.NewIndex([]*spec.Connector{c}))(t)
	for query, allowed := range map[string]bool{
		"expand[]=a&expand[]=b": true, "expand%5B%5D=a": true, "created=1": true, "created[gte]=1&created%5Blt%5D=2": true,
		"created[a][b]=1": true, "sort[by]=x": true, "fields=a,b": true, "filter[name]=x": true,
		"expand=a": false, "expand[0]=a": false, "sort[of]=x": false, "sort[by][of]=x": false, "filter[id]=x": false,
		"filter=x": false, "created[=1": false, "created]=1": false, "created[gte]x=1": false, "created[[a]]=1": false,
		"createdx[a]=1": false, "fields[]=a": false, "Created[gte]=1": false, "created[a\x01]=1": false,
	} {
		_, no := index.Match(spec.Target{Scheme: "https", Host: "api.shop.example", Port: 443, Method: "GET",
			Path: "/v1/charges", Query: query})
		if (no == nil) != allowed || no != nil && no.Reason != spec.ReasonQuery {
			t.Errorf("%s: %v, want it allowed: %v", query, no, allowed)
		}
	}
}

func TestFaultsOfBodies(t *testing.T) {
	t.Parallel()
	for _, w := range []struct{ fields, want string }{
		{`"method":"GET","body":"form"`, `body: a GET request has no body`},
		{`"method":"POST","body":"xml"`, `body: "xml" is not "json" or`},
		{`"method":"POST","body":"form","content_type":"text/x"`,
			`content_type: that of a body that is a form is fixed`},
		{`"method":"POST","content_type":"text/plain"`, `content_type: "text/plain" is not a media type of JSON`},
		{`"method":"POST","body":"raw","content_type":"application/X-WWW-form-urlencoded","inputs":[{"name":"f",
			"type":"file"}]`,
			`content_type: "application/X-WWW-form-urlencoded" is a form, which needs "body": "form" or "multipart"`},
		{`"method":"POST","body":"text","content_type":"multipart/mixed","inputs":[{"name":"f","type":"string"}]`,
			`content_type: "multipart/mixed" is a form, which needs "body": "form" or "multipart"`},
		{`"method":"POST","body":"raw"`, `body: it is "raw", which one input is the whole of, and 0`},
		{`"method":"POST","inputs":[{"name":"f","type":"file"}]`,
			`inputs[0]: a file needs "body": "multipart" or "raw"`},
		{`"method":"POST","body":"raw","inputs":[{"name":"f","type":"files"}]`,
			`inputs[0]: several files need "body": "multipart"`},
		{`"method":"GET","inputs":[{"name":"f","type":"files"}]`, "inputs[0]: a file stands in a body, not in the query"},
		{`"method":"POST","body":"multipart","inputs":[{"name":"f","type":"files","style":"deepObject"}]`,
			`inputs[0]: the style of an input of the body needs "body": "form"`},
		{`"method":"POST","body":"multipart","inputs":[{"name":"f","type":"array","explode":false}]`,
			`inputs[0]: the style of an input of the body needs "body": "form"`},
		{`"method":"POST","body":"multipart","inputs":[{"name":"f","style":"deepObject"},{"name":"f[a]"}]`,
			`inputs[1]: "f[a]" is a parameter of "f"`},
		{`"method":"GET","inputs":[{"name":"f","type":"file"}]`, `inputs[0]: a file stands in a body, not in the query`},
		{`"method":"POST","inputs":[{"name":"f","explode":false}]`,
			`inputs[0]: the style of an input of the body needs`},
		{`"method":"POST","body":"form","inputs":[{"name":"o","type":"object"}]`,
			`inputs[0]: an object in a form needs`},
		{`"method":"GET","inputs":[{"name":"a","style":"deepObject","values":["x"]}]`,
			`inputs[0].values: only an input whose`},
		{`"method":"GET","inputs":[{"name":"a","style":"deepObject"},{"name":"a[b]"}]`,
			`inputs[1]: "a[b]" is a parameter of "a"`},
		{`"method":"GET","inputs":[{"name":"a[b"}]`, `inputs[0].name: "a[b" is not letters`},
		{`"method":"GET","inputs":[{"name":"a[b]c"}]`, `inputs[0].name: "a[b]c" is not letters`},
		{`"method":"GET","inputs":[{"name":"[b]"}]`, `inputs[0].name: "[b]" is not letters`},
		{`"method":"GET","inputs":[{"name":"a","style":"deepObject","explode":false}]`,
			`inputs[0].explode: it is false`},
		{`"method":"GET","inputs":[{"name":"a","type":"string","schema":{"type":"object"}}]`,
			`inputs[0].schema: its type is`},
		{`"method":"POST","body":"form","mcp":{"tools":["*"]}`, `mcp: what it judges is application/json`},
	} {
		text := `{"schema_version":"aileron.connector.v1","connector":{"fqn":"github://acme/shop","version":"1.0.0"},` +
			`"tools":[{"name":"shop","operations":[{"name":"x","path":"/x","hosts":["api.shop.example"],` + w.fields + `}]}]}`
		_, err := spec.Parse([]byte(text))
		if err == nil || !strings.Contains(err.Error(), "tools[0].operations[0]."+w.want) {
			t.Errorf("%s: %v, want %s", w.fields, err, w.want)
		}
	}
}
