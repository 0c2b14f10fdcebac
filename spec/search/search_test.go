package search_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/spec"
	"github.com/ALRubinger/aileron/spec/search"
)

func parse(t testing.TB, operations string) []*spec.Connector {
	t.Helper()
	c := must.Get(spec.Parse([]byte(`{"schema_version":"aileron.connector.v1","connector":{
		"fqn":"github://acme/tracker","version":"1.0.0"},"tools":[{"name":"tracker",
		"operations":[` + operations + `]}]}`)))(t)
	return []*spec.Connector{c}
}

func operation(name, more string) string {
	return `{"name":"` + name + `","hosts":["a.example"]` + more + `}`
}

func names(hits []search.Hit) (list []string) {
	for _, h := range hits {
		list = append(list, h.Operation.Name)
	}
	return list
}

func TestTheClosestIsFirst(t *testing.T) {
	all := parse(t, strings.Join([]string{
		operation("input.only", `,"method":"GET","path":"/v1/x/{label}","inputs":[{"name":"label"}]`),
		operation("path.only", `,"method":"GET","path":"/v1/label/{id}"`),
		operation("text.only", `,"method":"GET","path":"/v1/y","summary":"Reads a LABEL"`),
		operation("grouped", `,"method":"GET","path":"/v1/z","group":"labels"`),
		operation("relabelled", `,"method":"GET","path":"/v1/r"`),
		operation("labels.list", `,"method":"GET","path":"/v1/l"`),
		operation("issues.label.create", `,"method":"POST","path":"/v1/i"`),
		operation("getLabelName", `,"method":"GET","path":"/v1/g"`),
		operation("other", `,"method":"GET","path":"/v1/o"`),
		operation("label", `,"method":"GET","path":"/v1/a"`),
	}, ","))
	for query, want := range map[string][]string{
		// a whole name, parts of names, names, groups, texts, paths; the shorter name of two that are equally close
		"label": {"label", "getLabelName", "issues.label.create", "relabelled", "labels.list", "grouped", "text.only",
			"path.only", "input.only"},
		"LABEL Create": {"issues.label.create"}, "label nothing": nil, "post": {"issues.label.create"},
		"label label": {"label", "getLabelName", "issues.label.create", "relabelled", "labels.list", "grouped", "text.only",
			"path.only", "input.only"},
	} {
		words := must.Get(search.Words(query))(t)
		if got := names(search.Find(t.Context(), all, search.Query{Words: words})); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", query, got, want)
		}
	}
	of := names(search.Find(t.Context(), all, search.Query{Group: "LABELS"}))
	if !slices.Equal(of, []string{"grouped", "labels.list"}) {
		t.Errorf("the group has %q", of)
	}
	for _, q := range []search.Query{{Tool: "other"}, {FQN: "github://acme/other"}, {Group: "none"}} {
		if got := search.Find(t.Context(), all, q); len(got) != 0 {
			t.Errorf("%+v: %q", q, names(got))
		}
	}
}

// A word in another alphabet is found in any case, too.
func TestWordsOfOtherAlphabets(t *testing.T) {
	all := parse(t, operation("a", `,"method":"GET","path":"/a","summary":"Читает ЗАДАЧИ"`))
	if got := search.Find(t.Context(), all, search.Query{Words: must.Get(search.Words("Задачи"))(t)}); len(got) != 1 {
		t.Errorf("found %q", names(got))
	}
}

func TestASearchIsBounded(t *testing.T) {
	for _, text := range []string{strings.Repeat("x", search.MaxWord+1), numbers(search.MaxWords + 1)} {
		if words, err := search.Words(text); err == nil {
			t.Errorf("%.40q: %d words", text, len(words))
		}
	}
	if words, err := search.Words(numbers(search.MaxWords-3), "1 2 3"); err != nil || len(words) != search.MaxWords-3 {
		t.Errorf("%d words, %v", len(words), err)
	}
}

// A search ends with what it is for, and what is the same for all operations of a tool counts for each.
func TestASearchEnds(t *testing.T) {
	all := parse(t, operation("a", `,"method":"GET","path":"/a"`)+","+operation("b", `,"method":"GET","path":"/b"`))
	ctx, cancel := context.WithCancel(t.Context())
	q := search.Query{Words: must.Get(search.Words("tracker acme"))(t)}
	if got := names(search.Find(ctx, all, q)); len(got) != 2 {
		t.Errorf("found %q", got)
	}
	cancel()
	if got := names(search.Find(ctx, all, q)); len(got) != 0 {
		t.Errorf("found %q after the end", got)
	}
}

func numbers(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "%d ", i)
	}
	return b.String()
}

func TestGroupsAreCounted(t *testing.T) {
	all := parse(t, strings.Join([]string{
		operation("issues.get", `,"method":"GET","path":"/a"`),
		operation("Issues.drop", `,"method":"DELETE","path":"/a"`),
		operation("x", `,"method":"POST","path":"/a","group":"issues"`),
		operation("y", `,"method":"POST","path":"/b","group":"Code-scanning"`),
		operation("ns:read", `,"method":"HEAD","path":"/c"`),
	}, ","))
	groups := search.Groups(all[0].Tools[0].Operations)
	var got []string
	for _, g := range groups {
		reads, writes, deletes := g.Count()
		got = append(got, fmt.Sprint(g.Name, reads, writes, deletes))
	}
	if want := []string{"Code-scanning0 1 0", "issues1 1 1", "ns1 0 0"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	for _, words := range [][]string{{"code-scanning"}, {"CODE", "scanning"}} {
		if g, ok := search.FindGroup(groups, words...); !ok || g.Name != "Code-scanning" {
			t.Errorf("%q: %+v", words, g)
		}
	}
	if g, ok := search.FindGroup(groups); ok {
		t.Errorf("no words: %+v", g)
	}
}

// As many operations as a specification has room for.
func BenchmarkFind(b *testing.B) {
	var list []string
	for i := range 2500 {
		more := fmt.Sprintf(`,"method":"POST","path":"/v1/things/%d/{id}",
			"summary":"Updates the thing with the number %d, unless it is locked","description":%q,
			"inputs":[{"name":"labels"},{"name":"milestone"}]`, i, i,
			strings.Repeat("What it does. ", 4))
		list = append(list, operation(fmt.Sprintf("things%d.update", i), more))
	}
	all := parse(b, strings.Join(list, ","))
	words := must.Get(search.Words("milestone update locked"))(b)
	b.ReportAllocs()
	for b.Loop() {
		if len(search.Find(b.Context(), all, search.Query{Words: words})) != 2500 {
			b.Fatal("not all are found")
		}
	}
}

// A text that nearly has each of the words, again and again.
func BenchmarkFindHostile(b *testing.B) {
	var list []string
	for i := range 2500 {
		list = append(list, operation(fmt.Sprint("x", i), `,"method":"GET","path":"/v1"`))
	}
	all := parse(b, strings.Join(list, ","))
	all[0].Tools[0].Description = strings.Repeat("a", 4000) + "b"
	var words []string
	for n := range search.MaxWords {
		words = append(words, strings.Repeat("a", search.MaxWord-2-n)+"ab")
	}
	b.ReportAllocs()
	for b.Loop() {
		search.Find(b.Context(), all, search.Query{Words: words})
	}
}
