package judge

import (
	"net/http"
	"slices"
	"strconv"

	"github.com/ALRubinger/aileron/spec"
	"github.com/ALRubinger/aileron/spec/content"
)

// message is a message of the Model Context Protocol, in JSON-RPC 2.0.
type message struct {
	method string // "": it is a response
	tool   string // that tools/call names
}

// responseMethod stands for the method of a response in audit rows.
const responseMethod = "response"

// The keys of messages and of their params that decide something, and the fields in which clients may repeat them.
var (
	messageKeys = []string{"jsonrpc", "id", "method", "params", "result", "error"}
	paramKeys   = []string{"name", "arguments", "_meta"}
)

const (
	methodField = "Mcp-Method"
	nameField   = "Mcp-Name"
)

// readMCP reads one message: a request, a notification or a response.
func readMCP(header http.Header, body []byte) (Content, error) {
	if err := checkJSON(body); err != nil {
		return nil, err
	}
	if at := skipSpace(body, 0); body[at] == '[' {
		return nil, undecidable("it is a batch: send each message by itself")
	}
	o, err := readObject(body, "the message", messageKeys...)
	if err != nil {
		return nil, err
	}
	if version, ok := text(o.get("jsonrpc")); !ok || version != "2.0" {
		return nil, undecidable("it is no message of JSON-RPC 2.0")
	}
	if id := o.get("id"); id != nil && !isID(id) {
		return nil, undecidable("the id is neither a string nor a whole number")
	}
	isResponse := o.get("result") != nil || o.get("error") != nil
	method, ok := text(o.get("method"))
	switch {
	case o.get("method") != nil && isResponse:
		return nil, undecidable("it is a request and a response")
	case isResponse && (len(o) != 3 || o.get("id") == nil): // jsonrpc, id, and result or error
		return nil, undecidable("it is a response with other keys than jsonrpc, id, and either result or error")
	case isResponse:
		return message{}, checkRepeated(header, message{})
	case !ok || !isMethod(method):
		return nil, undecidable("it has no method in plain characters")
	}
	m := message{method: method}
	if m.tool, err = toolOf(method, o.get("params")); err != nil {
		return nil, err
	}
	return m, checkRepeated(header, m)
}

// isID reports whether raw is the id of a request: MCP has no null.
func isID(raw []byte) bool {
	if raw[0] == '"' {
		return true
	}
	return len(slices.DeleteFunc(slices.Clone(raw), func(c byte) bool { return c == '-' || c >= '0' && c <= '9' })) == 0
}

// isMethod reports whether s can be the name of a method.
func isMethod(s string) bool { return content.IsMCPTool(s) }

// toolOf returns the tool that the params of a method name. Params must be an object.
func toolOf(method string, params []byte) (string, error) {
	if params == nil && method != content.CallTool {
		return "", nil
	}
	if params == nil {
		return "", undecidable("it has no params, which name the tool")
	}
	o, err := readObject(params, "params", paramKeys...)
	if err != nil || method != content.CallTool {
		return "", err
	}
	tool, ok := text(o.get("name"))
	if !ok || !content.IsMCPTool(tool) {
		return "", undecidable("params.name is no name of a tool: letters, digits, _ - . / and :, at most 128")
	}
	return tool, nil
}

// checkRepeated checks the fields in which a client repeats what is in the body. A server may read either.
func checkRepeated(header http.Header, m message) error {
	repeats := func(field, value string) bool {
		values := header[field]
		return len(values) == 0 || len(values) == 1 && values[0] == value
	}
	switch {
	case !repeats(methodField, m.method):
		return undecidable("the field %s is not the method of the message", methodField)
	case m.method == content.CallTool && !repeats(nameField, m.tool):
		return undecidable("the field %s is not the tool of the message", nameField)
	}
	return nil
}

// Repeated implements [Content]. Clients number their messages, and the progress that they ask for.
func (m message) Repeated(body []byte) []byte {
	o, err := readObject(body, "the message", messageKeys...)
	if err != nil {
		return body
	}
	var cut [][]byte
	if id := o.get("id"); id != nil && m.method != "" { // a response is one to the request of its id
		cut = append(cut, id)
	}
	if params, err := readObject(o.get("params"), "params", paramKeys...); err == nil {
		if meta, err := readObject(params.get("_meta"), "_meta", "progressToken"); err == nil {
			if token := meta.get("progressToken"); token != nil && isID(token) {
				cut = append(cut, token)
			}
		}
	}
	// Each is a part of body, so that its capacity tells where.
	at := func(part []byte) int { return cap(body) - cap(part) }
	slices.SortFunc(cut, func(a, b []byte) int { return at(a) - at(b) })
	rest, from := make([]byte, 0, len(body)), 0
	for _, part := range cut {
		rest = append(rest, body[from:at(part)]...)
		from = at(part) + len(part)
	}
	return append(rest, body[from:]...)
}

// Parts implements [Content].
func (m message) Parts() []Part { return []Part{m} }

// AllowedBy implements [Part].
func (m message) AllowedBy(op *spec.Operation) bool {
	switch {
	case op.MCP == nil:
		return false
	case m.method == "":
		return true // it answers a request of the server, and begins nothing
	case m.method == content.CallTool:
		return op.MCP.AllowsTool(m.tool)
	}
	return op.MCP.AllowsMethod(m.method)
}

// Fields implements [Content].
func (m message) Fields() map[string]any {
	switch m.method {
	case "":
		return map[string]any{"mcp_method": responseMethod}
	case content.CallTool:
		return map[string]any{"mcp_method": m.method, "mcp_tool": m.tool}
	}
	return map[string]any{"mcp_method": m.method}
}

// Requested implements [Part].
func (m message) Requested() string {
	if m.method == content.CallTool {
		return "tool:" + m.tool
	}
	return "method:" + m.method
}

// String implements [Part].
func (m message) String() string {
	if m.method == content.CallTool {
		return "the tool " + strconv.Quote(m.tool)
	}
	return "the method " + strconv.Quote(m.method) + " of MCP"
}
