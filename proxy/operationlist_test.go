package proxy

import (
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
)

// operationList is what the tests ask of the response to GET /v1/operations.
type operationList struct {
	Generation, Total, Callable, Next int
	Operations                        []struct {
		ConnectorFQN string `json:"connector_fqn"`
		Tool         string
		Operation    string
		Group        string
		Callable     bool
		Inputs       []struct {
			Name     string
			Required bool
		}
	}
	Groups []struct {
		ConnectorFQN string `json:"connector_fqn"`
		Tool, Group  string
		Operations   int
	}
}

// list asks for operations, and returns the status too.
func (w *world) list(query string) (list operationList, status int) {
	w.t.Helper()
	url := "http://" + w.addr + "/v1/operations" + query
	req := must.Get(http.NewRequestWithContext(w.t.Context(), http.MethodGet, url, nil))(w.t)
	req.Header.Set("Authorization", "Bearer "+testToken)
	res := must.Get(http.DefaultTransport.RoundTrip(req))(w.t)
	defer res.Body.Close()
	must.Do(w.t, json.NewDecoder(res.Body).Decode(&list))
	return list, res.StatusCode
}

func (l operationList) names() (names []string) {
	for _, op := range l.Operations {
		names = append(names, op.Operation)
	}
	return names
}

func TestOperationsAreFoundByTheirWords(t *testing.T) {
	w := newCalls(t, func(*Config) {}, hello)
	all, _ := w.list("")
	if all.Total != len(all.Operations) || all.Callable == 0 || all.Callable > all.Total {
		t.Errorf("all: %+v", all)
	}
	for query, want := range map[string][]string{
		"?q=MAKE": {"make"}, "?q=calls+drop": {"drop"}, "?q=title": {"make"}, "?q=nothing": nil, "?q=make+nothing": nil,
		"?q=mine&limit=0": nil, "?limit=1": all.names()[:1],
		"?group=MAKE": {"make"}, "?group=none": nil, "?group=get&q=drop": nil, "?tool=calls&q=make": {"make"}, "?tool=x": nil,
		"?limit=2&offset=1": all.names()[1:3], "?offset=99": nil,
	} {
		if got, status := w.list(query); !slices.Equal(got.names(), want) || status != http.StatusOK {
			t.Errorf("%s: %d %q, want %q", query, status, got.names(), want)
		}
	}
	for _, query := range []string{"?limit=1001", "?limit=-1", "?limit=x", "?q=%zz",
		"?offset=-1", "?offset=x", "?q=" + strings.Repeat("a+", 17)} {
		if _, status := w.list(query); status != http.StatusBadRequest {
			t.Errorf("%s: %d", query, status)
		}
	}
	first, _ := w.list("?limit=2&groups=true")
	if first.Next != 2 || len(first.Groups) != first.Total || first.Groups[1].Group != "get" ||
		first.Groups[1].Operations != 1 || all.Next != 0 || len(all.Groups) != 0 || all.Operations[0].Group != "get" {
		t.Errorf("the first page: %+v", first)
	}
	op := all.Operations[1]
	full := op.ConnectorFQN + " " + op.Tool + "." + op.Operation
	for name, want := range map[string][]string{
		full: {op.Operation}, strings.ToUpper(full): nil, full + "x": nil, "": nil, op.ConnectorFQN: nil,
	} {
		if got, status := w.list("?name=" + url.QueryEscape(name)); !slices.Equal(got.names(), want) ||
			status != http.StatusOK || got.Total != len(want) {
			t.Errorf("%q: %d %q, want %q", name, status, got.names(), want)
		}
	}
	// A variable of the path that is no input is an argument all the same.
	drop, _ := w.list("?q=drop")
	if in := drop.Operations[0].Inputs; len(in) != 1 || in[0].Name != "id" || !in[0].Required {
		t.Errorf("the inputs of drop are %+v", in)
	}
}

// A program that has listed what it may do learns by a number whether that is still so.
func TestAGenerationCountsWhatChanges(t *testing.T) {
	w := newCalls(t, func(*Config) {}, hello)
	first, _ := w.list("?limit=0")
	g := w.plane.Grants()
	w.plane.SetGrants(&Grants{Index: g.Index, Bound: g.Bound, Scrub: g.Scrub})
	if same, _ := w.list("?limit=0"); same.Generation != first.Generation {
		t.Errorf("the same grants: %d after %d", same.Generation, first.Generation)
	}
	w.plane.SetGrants(&Grants{Index: g.Index, Scrub: g.Scrub})
	if fewer, _ := w.list("?limit=0"); fewer.Generation != first.Generation+1 {
		t.Errorf("without credentials: %d after %d", fewer.Generation, first.Generation)
	}
}

// What a client says of itself is in the row only if it is known.
func TestTheSurfaceOfACallIsRecorded(t *testing.T) {
	w := newCalls(t, func(*Config) {}, hello)
	for said, want := range map[string]any{"mcp": "mcp", "MCP": nil, "other": nil, "": nil} {
		req := must.Get(http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+w.addr+operationsPath,
			strings.NewReader(`{"connector_fqn":"github://acme/calls","tool":"calls","operation":"mine","args":{}}`)))(t)
		req.Header.Set("Authorization", "Bearer "+testToken)
		req.Header.Set("X-Aileron-Surface", said)
		res := must.Get(http.DefaultTransport.RoundTrip(req))(t)
		must.Do(t, res.Body.Close())
		if got := w.last().Fields["surface"]; got != want || res.StatusCode != http.StatusOK {
			t.Errorf("%q: %d, the row has %v, want %v", said, res.StatusCode, got, want)
		}
	}
}

// A command has not all of its help: the session has the rest, in the form that a shell can read.
func TestTheSessionHasTheHelpOfCommands(t *testing.T) {
	w := newCalls(t, func(*Config) {}, hello)
	const path = "/v1/connector-operations/help"
	ask := func(fqn, tool, command, words string) string {
		return `{"connector_fqn":"` + fqn + `","tool":"` + tool + `","command":"` + command + `","words":[` + words + `]}`
	}
	const fqn = "github://acme/calls"
	for words, want := range map[string]string{
		`"make"`: "Usage: aileron-calls make [--args", `"things"`: " operations of aileron-calls have all of the words, ",
		`"nothing","at all"`: "No operation of aileron-calls has all of the words.\n",
		`""`:                 "Operations of github://acme/calls 1.0.0:\n",
	} {
		status, got := w.callAt(path, ask(fqn, "calls", "aileron-calls", words))
		if status != http.StatusOK || !strings.Contains(got, want) {
			t.Errorf("%s: %d %s", words, status, got)
		}
		req := must.Get(http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+w.addr+path,
			strings.NewReader(ask(fqn, "calls", "aileron-calls", words))))(t)
		req.Header = http.Header{"Authorization": {"Bearer " + testToken}, "Accept": {formShim}}
		res := must.Get(http.DefaultTransport.RoundTrip(req))(t)
		text := must.Get(io.ReadAll(res.Body))(t)
		must.Do(t, res.Body.Close())
		if string(text) != "0 200 - response\n"+got {
			t.Errorf("%s: a command receives %s", words, text)
		}
	}
	for _, c := range []struct{ body, reason, message string }{
		{ask("github://acme/none", "calls", "calls", ""), "operation_not_matched", "no installed connector has this"},
		{ask(fqn, "none", "calls", ""), "operation_not_matched", "github://acme/calls 1.0.0 has no such operation"},
		{ask(fqn, "calls", "c\\u001b[2J", ""), "arguments_invalid", "command"},
		{ask(fqn, "calls", "calls", `"`+strings.Repeat("x", 101)+`"`), "arguments_invalid", "a word has more than 100 bytes"},
		{ask(fqn, "calls", "calls", `7`), "arguments_invalid", "it is not an object with"},
		{`{"more":1}`, "arguments_invalid", "it is not an object with"},
	} {
		status, got := w.callAt(path, c.body)
		if status < 400 || !strings.Contains(got, c.message) || w.last().Reason != c.reason {
			t.Errorf("%s: %d %s, and the row has %q", c.body, status, got, w.last().Reason)
		}
	}
}

// A refusal of an operation that there is not names the connector, and what of it resembles what was asked for.
func TestAnUnknownOperationNamesItsConnector(t *testing.T) {
	w := newCalls(t, func(*Config) {}, hello)
	for operation, granted := range map[string]string{
		"things.make": `["operation:github://acme/calls calls make"]`,
		"nothing":     `["operation:github://acme/calls calls get","operation:github://acme/calls calls mine",`,
	} {
		_, got := w.call(invocation(operation, "{}"))
		for _, want := range []string{`"connector":"github://acme/calls@1.0.0"`, `"granted":` + granted,
			"github://acme/calls 1.0.0 has no such operation: GET /v1/operations?q=WORD finds one"} {
			if !strings.Contains(got, want) {
				t.Errorf("%s: there is no %s in %s", operation, want, got)
			}
		}
	}
	_, got := w.call(strings.Replace(invocation("get", "{}"), "acme/calls", "acme/none", 1))
	if !strings.Contains(got, `"connector":""`) || !strings.Contains(got, "no installed connector has this operation") {
		t.Errorf("an unknown connector: %s", got)
	}
}
