package judge_test

import (
	"encoding/json"
	"testing"

	"github.com/ALRubinger/aileron/proxy/judge"
)

// agrees fails if encoding/json, which takes the last of two keys and ignores their case, reads another message.
func agrees(t *testing.T, body string, content judge.Content) {
	t.Helper()
	var m struct {
		Method string          `json:"method"`
		Params json.RawMessage `json:"params"`
	}
	if err := json.Unmarshal([]byte(body), &m); err != nil {
		t.Fatalf("%q is decided, and no JSON: %v", body, err)
	}
	fields := content.Fields()
	if method := fields["mcp_method"]; method != m.Method && (method != "response" || m.Method != "") {
		t.Errorf("%q: the method is %q, and encoding/json reads %q", body, method, m.Method)
	}
	var params struct {
		Name string `json:"name"`
	}
	if fields["mcp_tool"] == nil {
		return
	}
	if err := json.Unmarshal(m.Params, &params); err != nil || params.Name != fields["mcp_tool"] {
		t.Errorf("%q: the tool is %q, and encoding/json reads %q, %v", body, fields["mcp_tool"], params.Name, err)
	}
}
