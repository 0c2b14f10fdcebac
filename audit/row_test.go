package audit

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/quick"
	"time"
)

// The row that is hashed is what encoding/json would write, whatever stands
// in it.
func TestTheCanonicalRowIsPlainJSON(t *testing.T) {
	same := func(r Row, name, value string, n int) bool {
		r.TS = time.Unix(int64(n), int64(n)).UTC()
		fields, err := appendObject(nil, map[string]any{name: value, "n": n, "list": []string{value}})
		if err != nil {
			t.Fatal(err)
		}
		if want, err := json.Marshal(map[string]any{name: value, "n": n, "list": []string{value}}); err != nil || string(want) != string(fields) {
			t.Errorf("the fields are %s, want %s", fields, want)
		}
		type plain Row
		want, err := json.Marshal(struct {
			plain
			TS       string          `json:"ts"`
			Fields   json.RawMessage `json:"fields"`
			PrevHash *string         `json:"prev_hash,omitempty"`
			Hash     *string         `json:"hash,omitempty"`
		}{plain: plain(r), TS: r.stamp(), Fields: fields})
		if err != nil {
			t.Fatal(err)
		}
		got := r.canonical(nil, string(fields))
		if string(got) != string(want) {
			t.Errorf("the row is\n%s, want\n%s", got, want)
		}
		return string(got) == string(want)
	}
	gives := func(id, host, path, name, value string, seq, bytes int64, port, n int) bool {
		return same(Row{Seq: seq, ID: id, Host: host, Path: path, Event: value, ResponseBytes: bytes, Port: port}, name, value, n)
	}
	if err := quick.Check(gives, nil); err != nil {
		t.Error(err)
	}
	for _, s := range []string{"", `a"b\c`, "<&>", "\x00\x1f\x7f", "é\u2028", "\xff\xfe", "/plain?x=~"} {
		same(Row{Host: s, Path: s}, s, s, 1)
	}
}

// Filters know an event or a decision by these lists: one that is missing
// could not be asked for.
func TestEveryEventAndDecisionIsListed(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "row.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string][]string{"Event": Events(), "Decision": Decisions()}
	found := 0
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		for prefix, list := range listed {
			if !strings.HasPrefix(spec.Names[0].Name, prefix) {
				continue
			}
			value, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
			if err != nil || !slices.Contains(list, value) {
				t.Errorf("%s is not listed (%v)", spec.Names[0], err)
			}
			found++
		}
		return true
	})
	if want := len(Events()) - 2*len(Changes()) + len(Decisions()); found != want {
		t.Errorf("%d constants were found, want %d", found, want)
	}
}
