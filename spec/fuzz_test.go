package spec

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
)

// Parse ends on any input. What it accepts is what a plain decoder reads, names
// no host that leads inward, and sends no credential in clear.
func FuzzParse(f *testing.F) {
	f.Add([]byte(specWith(goodFields)))
	f.Add([]byte(`{"schema_version": "aileron.connector.v1", "tools": [{"name": 1}]}`))
	f.Add([]byte(`{"a": {"a": [[[[]]]], "A": 1, "a": 2}} x`))
	examples := must.Get(filepath.Glob("../examples/connectors/*/" + SpecFile))(f)
	for _, name := range examples {
		data := must.Get(os.ReadFile(name))(f)
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := Parse(data)
		if err != nil {
			if c != nil || len(Diagnostics(err)) == 0 {
				t.Errorf("Parse = %v, %v", c, err)
			}
			return
		}
		var plain struct {
			Schema    string `json:"schema_version"`
			Connector struct{ FQN, Version string }
			Tools     []struct {
				Operations []struct{ Hosts []string }
			}
		}
		if err := json.Unmarshal(data, &plain); err != nil || plain.Schema != Schema ||
			plain.Connector.FQN != string(c.FQN) || len(plain.Tools) != len(c.Tools) {
			t.Fatalf("a plain decoder reads %+v, %v", plain, err)
		}
		for i, tool := range c.Tools {
			for j, op := range tool.Operations {
				if len(op.Hosts) != len(plain.Tools[i].Operations[j].Hosts) || len(op.Hosts) == 0 {
					t.Fatalf("the hosts are %v, and a plain decoder reads %v", op.Hosts, plain.Tools[i].Operations[j].Hosts)
				}
				for _, h := range op.Hosts {
					if !strings.Contains(h.Name, ".") || strings.HasSuffix(h.Name, "internal") || op.Injection != nil && h.Port == 80 {
						t.Errorf("%s may reach %s", op, h)
					}
				}
			}
		}
		if _, err := NewIndex([]*Connector{c}); err != nil {
			t.Errorf("one connector clashes with itself: %v", err)
		}
	})
}

// FuzzManifest: Parse ends, and what it takes has a name and a version.
func FuzzManifest(f *testing.F) {
	f.Add([]byte(goodManifest))
	f.Add([]byte("[connector]\nNAME = \"x\"\nname = 1\n[a.'b'.\"c\"]\n=\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := ParseManifest(data)
		if err == nil && (m.Name == "" || !isVersion(m.Version)) {
			t.Errorf("%q is taken", data)
		}
	})
}

// naive finds the operation that t is by asking every operation, and choosing
// by the precedence that Match promises.
func naive(ops []*Operation, ix *Index, t Target) *Operation {
	var best *Operation
	for _, op := range ops {
		if _, ok := op.Path.Match(t.Path); !ok || op.Method != t.Method && op.Method != "*" && op.Method != "" {
			continue
		}
		if !op.Hosts[0].Covers(t.Host, t.Port) {
			continue
		}
		if best == nil || wins(op, best, t.Path) {
			best = op
		}
	}
	if best == nil {
		return nil
	}
	if m, no := ix.MatchOperation(best, t); no == nil {
		return m.Operation
	}
	return nil
}

// wins reports that a goes before b, which comes earlier in the order.
func wins(a, b *Operation, path string) bool {
	if a.Hosts[0].Wildcard != b.Hosts[0].Wildcard {
		return b.Hosts[0].Wildcard
	}
	isBare := func(op *Operation) bool { // its slash is left out
		return op.Path.HasOptionalSlash() && strings.Count(path, "/") < len(op.Path.Segments())
	}
	kind := func(op *Operation, i int) int {
		if i >= len(op.Path.Segments()) || isBare(op) && i == len(op.Path.Segments())-1 {
			return 400
		}
		switch s := op.Path.Segments()[i]; {
		case s.Rest:
			return 300
		case s.IsAlone():
			return 200
		case s.Name != "": // the more text, and of as much the more before the variable, the less
			return 100 - 10*(len(s.Literal)+len(s.After)) - len(s.Literal)
		}
		return 0
	}
	for i := range max(len(a.Path.Segments()), len(b.Path.Segments())) {
		if x, y := kind(a, i), kind(b, i); x != y {
			return x < y
		}
	}
	if x, y := isBare(a), isBare(b); x != y {
		return y
	}
	if a.Method != b.Method {
		return b.Method == "*"
	}
	return a.Injection != nil && b.Injection == nil
}

// FuzzMatch: the tree decides as asking every operation does, also with dots,
// escapes and empty segments in the path.
func FuzzMatch(f *testing.F) {
	words := []string{"a", "b", "c", "{x}", "{y}", "{z...}", "", "{$}", "a{u}", "{v}b", "a{w}b"}
	hosts := []string{"h.w.example", "*.w.example", "i.w.example"}
	f.Add(uint64(1), "GET", "h.w.example", "/a/b")
	f.Add(uint64(2), "POST", "i.w.example", "/a//b/")
	f.Add(uint64(3), "HEAD", "j.w.example", "/%2e%2e/b/c")
	f.Add(uint64(4), "GET", "w.example", "/a/../c")
	f.Fuzz(func(t *testing.T, seed uint64, method, host, path string) {
		r := rand.New(rand.NewPCG(seed, 0))
		c := &Connector{FQN: "hub://a/one", Version: "1.0.0"}
		tool := Tool{Name: "tool"}
		for i := range 1 + r.IntN(12) {
			text := ""
			for range 1 + r.IntN(4) {
				text += "/" + words[r.IntN(len(words))]
			}
			tmpl, err := ParseTemplate(text)
			if err != nil {
				continue
			}
			if r.IntN(2) == 0 {
				tmpl.AdmitNoSlash()
			}
			h := must.Get(ParseHost(hosts[r.IntN(len(hosts))]))(t)
			op := &Operation{
				Connector: c, Tool: "tool", Name: fmt.Sprint("op", i),
				Method: []string{"GET", "POST", "*"}[r.IntN(3)], Path: tmpl, Hosts: []HostPattern{h},
			}
			if r.IntN(2) == 0 {
				op.Injection = &Injection{Kind: "bearer"}
			}
			tool.Operations = append(tool.Operations, op)
		}
		c.Tools = []Tool{tool}
		ix := must.Get(NewIndex([]*Connector{c}))(t)
		for _, p := range []string{path, "/a/b/c", "/a", "/c/b/a/a", "/acb/ab/b", "/aab"} {
			target := Target{Scheme: "https", Host: host, Port: 443, Method: method, Path: p}
			want := naive(tool.Operations, ix, target)
			m, no := ix.Match(target)
			if m.Operation != want || (no == nil) != (want != nil) {
				t.Fatalf("Match(%v) = %v, %v; asking every operation finds %v", target, m.Operation, no, want)
			}
			if no != nil && (no.Error() == "" || len(no.Granted) > 32) {
				t.Errorf("the denial is %+v", no)
			}
			for _, param := range m.Params {
				lower := strings.ToLower(param.Value)
				if strings.Contains(lower, "%2f") || strings.Contains("/"+lower+"/", "/../") {
					t.Errorf("the variable %s is %q", param.Name, param.Value)
				}
			}
		}
	})
}
