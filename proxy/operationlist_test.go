package proxy

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
)

// operationList is what the tests ask of the response to GET /v1/operations.
type operationList struct {
	Generation, Total, Callable int
	Operations                  []struct {
		ConnectorFQN string `json:"connector_fqn"`
		Tool         string
		Operation    string
		Callable     bool
		Inputs       []struct {
			Name     string
			Required bool
		}
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
	} {
		if got, status := w.list(query); !slices.Equal(got.names(), want) || status != http.StatusOK {
			t.Errorf("%s: %d %q, want %q", query, status, got.names(), want)
		}
	}
	for _, query := range []string{"?limit=1001", "?limit=-1", "?limit=x", "?q=%zz", "?q=" + strings.Repeat("a+", 17)} {
		if _, status := w.list(query); status != http.StatusBadRequest {
			t.Errorf("%s: %d", query, status)
		}
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
