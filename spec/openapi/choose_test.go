package openapi

import (
	"slices"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/spec/scaffold"
)

const grouped = `{"openapi":"3.0.3","info":{"title":"T"},"servers":[{"url":"https://a.example"}],"paths":{
	"/v1/issues":{"get":{"tags":["Issue tracker"],"operationId":"issues/list"},
		"post":{"tags":["Issue tracker"],"operationId":"add"}},
	"/v1/issues/{id}":{"delete":{"tags":["Issue tracker"],"operationId":"issues/drop"}},
	"/v1/accounts":{"get":{"operationId":"GetAccounts"}},
	"/pods/{p}/exec":{"get":{"tags":["задачи"],"operationId":"pods.exec"}},
	"/v2/hooks":{"put":{"operationId":"hooks.set"}}}}`

func chosenOf(t *testing.T, opts Options) ([]scaffold.Operation, error) {
	t.Helper()
	opts.FQN = "github://acme/t"
	c, _, err := Connector([]byte(grouped), opts)
	if err != nil {
		return nil, err
	}
	return c.Operations, nil
}

func TestOperationsHaveTheGroupsOfTheDocument(t *testing.T) {
	var got []string
	for _, op := range must.Get(chosenOf(t, Options{}))(t) {
		got = append(got, op.Name+" "+op.Group)
	}
	want := []string{"issues.list Issue-tracker", "add Issue-tracker", "issues.drop Issue-tracker", "GetAccounts accounts",
		"pods.exec ", "hooks.set "} // which are those of their names
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	groups := must.Get(Groups([]byte(grouped), Options{}))(t)
	if want := (Group{"Issue-tracker", 1, 1, 1}); len(groups) != 4 || groups[2] != want {
		t.Errorf("the groups are %+v", groups)
	}
}

func TestGroupsAndApprovalsAreChosen(t *testing.T) {
	for _, c := range []struct {
		why   string
		opts  Options
		taken string // names, with "!" where an approval is needed
		err   string
	}{
		{"neither", Options{}, "issues.list add! issues.drop! GetAccounts pods.exec! hooks.set!", ""},
		{"a group, in any case", Options{Groups: []string{"issue-TRACKER"}}, "issues.list add! issues.drop!", ""},
		{"two groups", Options{Groups: []string{"hooks", "accounts"}}, "GetAccounts hooks.set!", ""},
		{"a group that is none", Options{Groups: []string{"acounts"}}, "", `no operation in the group "acounts"`},
		{"deletes", Options{Approve: []string{"DELETE *"}},
			"issues.list add issues.drop! GetAccounts pods.exec! hooks.set", ""},
		{"by name", Options{Approve: []string{"hooks.*", "GET /v1/iss*"}},
			"issues.list! add issues.drop GetAccounts pods.exec! hooks.set!", ""},
		{"nothing", Options{ApproveNone: true}, "issues.list add issues.drop GetAccounts pods.exec! hooks.set", ""},
		{"a misspelled pattern", Options{Approve: []string{"DELET *"}}, "", `what --approve names: "DELET *"`},
	} {
		operations, err := chosenOf(t, c.opts)
		var got []string
		for _, op := range operations {
			mark := map[bool]string{true: "!"}[op.Approval == "required"]
			got = append(got, op.Name+mark)
		}
		if taken := strings.Join(got, " "); taken != c.taken || (err == nil) != (c.err == "") ||
			err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: %q, %v", c.why, taken, err)
		}
	}
}
