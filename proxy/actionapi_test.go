package proxy

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/spec"
	"github.com/ALRubinger/aileron/spec/action"
)

const pinnedHash = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

// pinnedSpec is a version of the connector of callsSpec that no request on the wire can use.
const pinnedSpec = `{"schema_version":"aileron.connector.v1",
"connector":{"fqn":"github://acme/calls","version":"0.9.0"},
"tools":[{"name":"calls","operations":[
 {"name":"get","method":"GET","path":"/v0/things/{id}","hosts":["api.good.example"],"credential":"bearer"},
 {"name":"mine","method":"GET","path":"/v0/things/mine","hosts":["api.good.example"],"credential":"bearer"}]}]}`

// report is an action that pins the connector of pinnedSpec, which the wire does not use.
const report = `+++
[action]
name = "report"
version = "2.0.0"
description = "Read two things"
[[inputs]]
name = "id"
type = "string"
required = true
[[requires.connectors]]
name = "github://acme/calls"
version = "0.9.0"
hash = "` + pinnedHash + `"
capabilities = ["get"]
[[execute]]
tool = "calls"
operation = "get"
args = { id = "first" }
[[execute]]
tool = "calls"
operation = "get"
args = { id = "${args.id}" }
+++
`

// newActions returns a world in which the wire uses one version of a connector and an action pins another.
func newActions(t *testing.T, file string, answer http.HandlerFunc) *world {
	t.Helper()
	w := newCalls(t, func(*Config) {}, answer)
	c := must.Get(spec.Load([]byte(strings.Replace(callsManifest, "1.0.0", "0.9.0", 1)), []byte(pinnedSpec)))(t)
	c.Hash = pinnedHash
	index := must.Get(spec.NewIndex([]*spec.Connector{c}))(t)
	a := must.Get(action.Parse([]byte(file)))(t)
	old := w.plane.grants.Load()
	g := &Grants{Index: old.Index, Bound: old.Bound, Scrub: old.Scrub,
		Pinned: map[string]*Grants{pinnedHash: {Index: index, Bound: old.Bound}}, Actions: map[string]Action{}}
	linked, err := a.Link(func(action.Pin) (*spec.Connector, error) { return c, nil })
	g.Actions[a.Name] = Action{Linked: linked, Fault: err, Reason: ReasonActionUnusable}
	g.Actions["missing"] = Action{Reason: ReasonPinMissing,
		Fault: hint.New(errors.New("it pins github://acme/x@1.0.0: it is not installed"), "install what actions pin")}
	w.plane.SetGrants(g)
	return w
}

// run runs an action, and returns the response's body and the denial's reason and boundary.
func (w *world) run(body string) (text, why, boundary string) {
	w.t.Helper()
	_, text = w.callAt(actionsPath, body)
	if strings.Contains(text, `"error"`) {
		_, reason := reason(w.t, text)
		why = string(reason)
	}
	if _, rest, ok := strings.Cut(text, `"boundary":"`); ok {
		boundary, _, _ = strings.Cut(rest, `"`)
	}
	return text, why, boundary
}

func TestAnActionCallsExactlyWhatItPins(t *testing.T) {
	w := newActions(t, report, hello)
	text, _, _ := w.run(`{"action":"report","args":{"id":"7"}}`)
	if !strings.HasPrefix(text, `{"status":"proxied","action":"report","connector_fqn":"github://acme/calls",`) {
		t.Fatalf("it is %s", text)
	}
	var paths []string
	for _, r := range w.requests() {
		paths = append(paths, r.URL.Path)
		if r.Header.Get("Authorization") != "Bearer "+testSecret {
			t.Errorf("the upstream got %v", r.Header)
		}
	}
	if !slices.Equal(paths, []string{"/v0/things/first", "/v0/things/7"}) {
		t.Errorf("the upstream got %v", paths)
	}
	row := w.last()
	if row.ConnectorVersion != "0.9.0" || row.Fields["action"] != "report" || row.Fields["action_version"] != "2.0.0" ||
		row.Fields["step"] != float64(2) && row.Fields["step"] != 2 {
		t.Errorf("the row is %+v", row)
	}
	d := w.describe()
	if len(d.Actions) != 1 || d.Actions[0].Name != "report" || d.Actions[0].Inputs[0].Name != "id" ||
		d.Connectors[0].Version != "1.0.0" {
		t.Errorf("the session is described as %+v", d)
	}
	// On the wire the pinned operation is still none.
	if res, _ := w.do("GET", "https://api.good.example/v0/things/7", ""); res.StatusCode != http.StatusForbidden {
		t.Errorf("on the wire: %d", res.StatusCode)
	}
}

// What is denied sends nothing, not even the steps before it, and has one row with the name of the action.
func TestAnActionIsHeldToItsBoundaries(t *testing.T) {
	w := newActions(t, report, hello)
	for _, c := range []struct{ body, reason, boundary, want string }{
		{`{"action":"report","args":{"id":"mine"}}`, "operation_not_matched", "action",
			"step 2: the request is calls mine, which the action does not list"},
		{`{"action":"report","args":{"id":"../admin"}}`, "arguments_invalid", "", "step 2: args.id: it has a slash"},
		{`{"action":"report","args":{"id":".."}}`, "arguments_invalid", "", "step 2: args.id: it is a dot segment"},
		{`{"action":"report","args":{"id":"7","host":"evil.example"}}`, "arguments_invalid", "", "no such input"},
		{`{"action":"report","args":{"id":7}}`, "arguments_invalid", "", "args.id: it is not a string"},
		{`{"action":"report","args":["7"]}`, "arguments_invalid", "", "args: it is not an object"},
		{`{"action":"report","args":{"id":"7","id":"8"}}`, "arguments_invalid", "", "duplicate key"},
		{`{"action":"report","args":{"id":NaN}}`, "arguments_invalid", "", "it is not JSON"},
		{`{"action":"report","args":{"id":"7"},"connector_fqn":"x"}`, "arguments_invalid", "", "unknown key"},
		{`{"action":"report"}`, "arguments_invalid", "", "args.id: it is missing"},
		{`{"action":"../report","args":{}}`, "operation_not_matched", "", "no action of that name"},
		{`{"action":"missing","args":{}}`, "pin_not_installed", "", "install what actions pin"},
		{`{"action":"report","args":{"id":"` + strings.Repeat("x", spec.MaxSize) + `"}}`, "body_too_large", "",
			"the call has"},
	} {
		before := len(w.rows())
		text, why, boundary := w.run(c.body)
		if why != c.reason || boundary != c.boundary || !strings.Contains(text, c.want) {
			t.Errorf("%.80s: %s %s: %s", c.body, why, boundary, text)
		}
		rows := w.rows()[before:]
		if len(rows) != 1 || rows[0].Reason != c.reason ||
			strings.Contains(c.body, `"report"`) && why != "body_too_large" && rows[0].Fields["action"] != "report" &&
				strings.Contains(c.want, "step") {
			t.Errorf("%.80s: the rows are %+v", c.body, rows)
		}
	}
	if n := len(w.requests()); n != 0 {
		t.Errorf("the upstream got %d requests", n)
	}
}

// A file that lists less than it uses is denied by the boundary that it does not meet.
func TestAnActionThatUsesWhatItDoesNotListIsDenied(t *testing.T) {
	for file, boundary := range map[string]string{
		strings.Replace(report, `["get"]`, `["mine"]`, 1):                   "action",
		strings.Replace(report, `["get"]`, `["get", "make"]`, 1):            "connector",
		strings.ReplaceAll(report, `operation = "get"`, `operation = "no"`): "connector",
	} {
		w := newActions(t, file, hello)
		text, why, got := w.run(`{"action":"report","args":{"id":"7"}}`)
		row := w.last()
		if why != string(ReasonNotMatched) || got != boundary || row.Event != audit.EventOperationRejected ||
			row.Fields["action"] != "report" || row.Fields["boundary"] != boundary || len(w.requests()) != 0 {
			t.Errorf("%s: %s %s: %s, %+v", boundary, why, got, text, row)
		}
	}
}

// No step follows one that the upstream refuses.
func TestAStepFollowsOneThatSucceeds(t *testing.T) {
	for status, requests := range map[int]int{
		http.StatusOK: 2, http.StatusFound: 2, http.StatusBadRequest: 1, http.StatusNotFound: 1,
	} {
		w := newActions(t, report, func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(status) })
		text, _, _ := w.run(`{"action":"report","args":{"id":"7"}}`)
		if !strings.Contains(text, fmt.Sprintf(`"upstream_status":%d`, status)) || len(w.requests()) != requests {
			t.Errorf("%d: %d requests, want %d: %s", status, len(w.requests()), requests, text)
		}
	}
}
