package shims

import (
	"bytes"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/spec"
)

const nested = `{"schema_version": "aileron.connector.v1",
 "connector": {"fqn": "github://acme/shop", "version": "1.0.0"},
 "tools": [{"name": "shop", "operations": [
  {"name": "orders.create", "method": "POST", "path": "/v1/orders/{id}", "hosts": ["api.shop.example"],
   "inputs": [{"name": "items", "required": true, "schema": {"type": "array", "items": {"type": "object",
     "required": ["price", "kind", "of"], "properties": {"price": {"type": "integer"},
      "kind": {"type": "string", "enum": ["it's", "b"]}, "of": {"type": "array", "items": {"type": "object",
       "required": ["deep"], "properties": {"deep": {"type": "boolean"}}}}, "note": {"type": "string"}}}}}]},
  {"name": "files.upload", "method": "POST", "path": "/v1/files", "hosts": ["api.shop.example"], "body": "multipart",
   "inputs": [{"name": "file", "type": "file", "required": true}, {"name": "meta", "type": "object"}]},
  {"name": "files.add", "method": "POST", "path": "/v1/all", "hosts": ["api.shop.example"], "body": "multipart",
   "inputs": [{"name": "files", "type": "files", "required": true}]},
  {"name": "list", "method": "GET", "path": "/v1/list", "hosts": ["api.shop.example"],
   "inputs": [{"name": "expand[]", "type": "array", "required": true}, {"name": "at", "type": "object",
    "style": "deepObject", "required": true}, {"name": "n", "type": "number", "required": true}]},
  {"name": "repo.get", "method": "GET", "path": "/v1/repos/{repo}", "hosts": ["api.shop.example"],
   "inputs": [{"name": "repo", "required": true, "values": ["*.git"]}]},
  {"name": "ping", "method": "POST", "path": "/v1/ping", "hosts": ["api.shop.example"]},
  {"name": "list.put", "method": "PUT", "path": "/v1/list", "hosts": ["api.shop.example"], "body": "raw",
   "content_type": "application/json", "inputs": [{"name": "body", "type": "array", "required": true}]}]}]}`

// The example of a help text is a call that the session accepts.
func TestTheExampleIsAValidCall(t *testing.T) {
	c := must.Get(spec.Parse([]byte(nested)))(t)
	for _, op := range c.Tools[0].Operations {
		var b bytes.Buffer
		operationHelp(&b, "shop", op, nil)
		args := "{}"
		_, example, _ := strings.Cut(b.String(), "\nExample:\n")
		if _, after, ok := strings.Cut(example, " --args '"); ok {
			args = strings.ReplaceAll(strings.TrimSuffix(strings.TrimSpace(after), "'"), `'\''`, "'")
		}
		call := `{"connector_fqn":"github://acme/shop","tool":"shop","operation":"` + op.Name + `","args":` + args
		in, err := spec.ParseInvocation([]byte(call + "}"))
		if _, file, ok := strings.Cut(example, " --file "); ok {
			name, _, _ := strings.Cut(file, "=")
			in, err = spec.ParseUpload([]byte(call+`,"files":[{"input":"`+name+`","size":1}]}`), []byte("salt"))
		}
		if err == nil {
			_, err = op.Call(in)
		}
		if err != nil {
			t.Errorf("%s: %v in the example of\n%s", op.Name, err, b.String())
		}
	}
}

func TestTheHelpOfABody(t *testing.T) {
	c := must.Get(spec.Parse([]byte(nested)))(t)
	want := map[string]string{
		"orders.create": "  items  array of object with price (required), kind (required), of (required), note, required\n",
		"files.upload":  `  file  file: --file file=PATH, or a text or {"base64": …, "filename": …}, required` + "\n",
		"files.add": `  files  files: --file files=PATH for each, or a list of texts or {"base64": …, "filename": …}` +
			", required\n",
		"repo.get": `{"repo":"TEXT.git"}`,
		"ping":     "It has no arguments.\nIt sends no body: a request that needs one is sent with an HTTP client.\n",
	}
	for _, op := range c.Tools[0].Operations {
		var b bytes.Buffer
		if operationHelp(&b, "shop", op, nil); !strings.Contains(b.String(), want[op.Name]) {
			t.Errorf("%s: want %s in\n%s", op.Name, want[op.Name], b.String())
		}
	}
}
