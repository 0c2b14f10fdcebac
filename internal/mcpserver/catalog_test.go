package mcpserver_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/proxy/api"
)

func operations(n int) (ops []api.ListedOperation) {
	for i := range n {
		ops = append(ops, operation("github://acme/big", "big", fmt.Sprintf("op.%03d", i), "GET"))
	}
	return ops
}

func TestFortyOperationsAreToolsAndMoreACatalogue(t *testing.T) {
	s := &sessionAPI{ops: operations(40)}
	cs := connect(t, s, nil)
	if got := toolNames(t, cs); len(got) != 41 {
		t.Errorf("%d tools of 40 operations", len(got))
	}
	s.set(operations(41)...)
	want := []string{"call_operation", "read_more", "search_operations"}
	if got := toolNames(t, cs); !slices.Equal(got, want) {
		t.Errorf("tools of 41 operations: %q, want %q", got, want)
	}
	s.set(operations(2)...)
	if got := toolNames(t, cs); !slices.Equal(got, []string{"big.op.000", "big.op.001", "read_more"}) {
		t.Errorf("tools of 2 operations: %q", got)
	}
}

func TestTheCatalogueIsSearchedByGroup(t *testing.T) {
	ops := operations(50)
	for i := range 3 {
		ops[i].Group = "first"
	}
	s := &sessionAPI{ops: ops}
	cs := connect(t, s, nil)
	texts, isError := call(t, cs, "search_operations", map[string]any{"query": "op", "group": "first"})
	if isError || !strings.Contains(texts[0], `"total":3`) || strings.Count(texts[0], `"group":"first"`) != 3 {
		t.Errorf("found %s", texts)
	}
}

func TestTheCatalogueIsSearchedAndCalled(t *testing.T) {
	s := &sessionAPI{ops: operations(300), run: func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprintf(w, "0 200 - response\n%s", must.Get(io.ReadAll(r.Body))(t))
	}}
	cs := connect(t, s, nil)
	texts, isError := call(t, cs, "search_operations", map[string]any{"query": "op.12", "limit": 3})
	var found struct {
		Total      int
		Note       string
		Operations []struct {
			Operation   string
			InputSchema map[string]any
		}
	}
	must.Do(t, json.Unmarshal([]byte(texts[0]), &found))
	if isError || found.Total != 10 || len(found.Operations) != 3 ||
		found.Note != "7 more match; search with more words" || found.Operations[0].InputSchema["type"] != "object" {
		t.Fatalf("found %s", texts)
	}
	texts, isError = call(t, cs, "call_operation", map[string]any{"operation": found.Operations[2].Operation,
		"arguments": map[string]any{"a": 1}})
	want := `{"args":{"a":1},"connector_fqn":"github://acme/big","operation":"op.122","tool":"big"}`
	if isError || texts[0] != want {
		t.Errorf("the session was asked %q, want %q", texts, want)
	}
	for _, c := range []struct{ tool, args, want string }{
		{"call_operation", `{"operation":"github://acme/big big.op.999"}`, "args.operation: the session has no operation"},
		{"call_operation", `{"operation":"big.op.000"}`, "args.operation: it is no name that search_operations returns"},
		{"call_operation", `{"arguments":{}}`, "args.operation: it is missing"},
		{"call_operation", `{"operation":"x","arguments":[]}`, "args.arguments: it is not an object"},
		{"call_operation", `{"operation":"x","operation":"y"}`, "args"},
		{"search_operations", `{"limit":0}`, "args.limit: it must be from 1 to 40"},
		{"search_operations", `{"limit":1.5}`, "args.limit: it is not an integer"},
		{"search_operations", `{"words":"x"}`, "args.words: there is no such input"},
	} {
		texts, isError := call(t, cs, c.tool, json.RawMessage(c.args))
		if !isError || !strings.HasPrefix(texts[0], c.want) {
			t.Errorf("%s %s: %q, want %q", c.tool, c.args, texts, c.want)
		}
	}
}

// An exact name is found, whatever others have its words too.
func TestAnExactNameIsFoundBehindManyOthers(t *testing.T) {
	var ops []api.ListedOperation
	for i := range 100 {
		ops = append(ops, operation("github://acme/big", "big", fmt.Sprintf("get.%02d", i), "GET"))
	}
	ops = append(ops, operation("github://acme/big", "big", "get", "GET"))
	cs := connect(t, &sessionAPI{ops: ops, run: reply(http.StatusOK, "the body")}, nil)
	texts, isError := call(t, cs, "call_operation", map[string]any{"operation": "github://acme/big big.get"})
	if isError || texts[0] != "the body" {
		t.Errorf("%v %q", isError, texts)
	}
}

// Searches wait for slots like calls, and are refused beyond those that may wait.
func TestSearchesAreBoundedLikeCalls(t *testing.T) {
	b := newBlocked()
	b.ops = operations(50)
	cs := connect(t, &b.sessionAPI, nil)
	var calls sync.WaitGroup
	for range 16 {
		calls.Go(func() { call(t, cs, "call_operation", map[string]any{"operation": "github://acme/big big.op.001"}) })
	}
	for range 16 {
		<-b.came
	}
	const searches = 300
	var wg sync.WaitGroup
	var refused atomic.Int64
	for range searches {
		wg.Go(func() {
			texts, isError := call(t, cs, "search_operations", map[string]any{"query": "op.04"})
			if !isError {
				return
			}
			if !strings.Contains(texts[0], "256 calls are waiting already") {
				t.Errorf("%q", texts)
			}
			if refused.Add(1) == searches-240 {
				close(b.release)
			}
		})
	}
	wg.Wait()
	calls.Wait()
	if refused.Load() != searches-240 {
		t.Errorf("%d searches were refused, want %d", refused.Load(), searches-240)
	}
}
