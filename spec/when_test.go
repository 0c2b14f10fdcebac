package spec

import (
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
)

// conditional is an operation with a condition for each place.
func conditional(t *testing.T, more string) (*Operation, error) {
	t.Helper()
	c, err := Parse([]byte(`{"schema_version":"aileron.connector.v1",
	"connector":{"fqn":"github://acme/x","version":"1.0.0"},
	"tools":[{"name":"x","operations":[{"name":"o","method":"POST","path":"/b/{branch}/{at...}","hosts":["a.example"],
	"inputs":[{"name":"n","type":"integer","in":"query"},{"name":"q","in":"query"},
	{"name":"p","in":"query","style":"pipeDelimited"},{"name":"s","in":"query","style":"spaceDelimited"},
	{"name":"c","in":"query","explode":false},{"name":"d","in":"query","style":"deepObject"},
	{"name":"dry","type":"boolean","in":"body"},{"name":"tags","type":"array","in":"body"}], ` + more + `}]}]}`))
	if err != nil {
		return nil, err
	}
	return c.Tools[0].Operations[0], nil
}

func TestAConditionIsOfDeclaredInputs(t *testing.T) {
	op := must.Get(conditional(t, `"approval":{"when":{"path.branch":["main","release/*"],"query.n":["1"],
		"body.dry":["false"]}}`))(t)
	want := "when path.branch is main or release/* and query.n is 1 and body.dry is false"
	if op.Asks() != want || op.Approval != ApprovalWhen || !op.QueryDeclaredOnly {
		t.Errorf("%q asks %q", op.Approval, op.Asks())
	}
	if op := must.Get(conditional(t, `"approval":"required"`))(t); op.Asks() != "always" || len(op.When) > 0 {
		t.Errorf("required asks %q", op.Asks())
	}
	if op := must.Get(conditional(t, `"summary":""`))(t); op.Asks() != "" || op.Approval != ApprovalNone {
		t.Errorf("nothing asks %q", op.Asks())
	}
	const exist = "which has: body.dry, body.tags, path.at, path.branch, query.n, query.q"
	for approval, want := range map[string]string{
		`"sometimes"`:                                     `"sometimes" is not "none" or "required"`,
		`true`:                                            `it is not a string`,
		`{}`:                                              `approval.when: it is not an object of 1 to 8`,
		`{"when":{}}`:                                     `approval.when: it is not an object of 1 to 8`,
		`{"when":["path.branch"]}`:                        `approval.when: it is not an object of 1 to 8`,
		`{"unless":{"path.branch":["a"]}}`:                `approval.unless: unknown key`,
		`{"when":{"path.Branch":["a"]}}`:                  exist,
		`{"when":{"branch":["a"]}}`:                       exist,
		`{"when":{"body.q":["a"]}}`:                       exist,
		`{"when":{"query.p":["a"]}}`:                      exist,
		`{"when":{"query.s":["a"]}}`:                      exist,
		`{"when":{"query.c":["a"]}}`:                      exist,
		`{"when":{"query.d":["a"]}}`:                      exist,
		`{"when":{"path.branch":[]}}`:                     `it has no entry`,
		`{"when":{"path.branch":"main"}}`:                 `it is not a list`,
		`{"when":{"path.branch":[1]}}`:                    `it is not a string`,
		`{"when":{"path.branch":["a","a"]}}`:              `"a" appears twice`,
		`{"when":{"path.branch":["*"]}}`:                  `is never the plain text`,
		`{"when":{"path.branch":["*a"]}}`:                 `is never the plain text`,
		`{"when":{"path.branch":["a%2Fb"]}}`:              `is never the plain text`,
		`{"when":{"path.branch":["é"]}}`:                  `is never the plain text`,
		`{"when":{"query.n":["01"]}}`:                     `is never the plain text`,
		`{"when":{"query.n":["1*"]}}`:                     `is never the plain text`,
		`{"when":{"body.dry":["no"]}}`:                    `is never the plain text`,
		`{"when":{"body.tags":["a"]}}`:                    `its type is array`,
		`{"when":{"path.branch":["a"]}},"query":"any"`:    `a condition for approvals needs "declared"`,
		`{"when":{"path.branch":["a"],"path.branch":[]}}`: `duplicate key`,
	} {
		if _, err := conditional(t, `"approval":`+approval); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", approval, err, want)
		}
	}
}
