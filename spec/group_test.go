package spec

import "testing"

func TestAnOperationHasAGroup(t *testing.T) {
	for fields, want := range map[string]string{
		`"name":"issues.get"`: "issues", `"name":"ns:get.x"`: "ns", `"name":"get"`: "get",
		`"name":"issues.get","group":"Pulls"`: "Pulls",
	} {
		c, err := Parse([]byte(`{"schema_version":"aileron.connector.v1","connector":{"fqn":"github://a/b","version":"1.0.0"},
			"tools":[{"name":"b","operations":[{` + fields + `,"hosts":["a.example"]}]}]}`))
		if err != nil || c.Tools[0].Operations[0].Group != want {
			t.Errorf("%s: %v, want the group %q", fields, err, want)
		}
	}
	_, err := Parse([]byte(`{"schema_version":"aileron.connector.v1","connector":{"fqn":"github://a/b","version":"1.0.0"},
		"tools":[{"name":"b","operations":[{"name":"x","group":"a\u001b[2J","hosts":["a.example"]}]}]}`))
	if err == nil {
		t.Error("a group with a control character is accepted")
	}
}
