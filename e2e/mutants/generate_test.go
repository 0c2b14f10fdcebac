package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/ALRubinger/aileron/e2e/must"
)

const source = `package a

func f(a, b int, s []byte) (bool, error) {
	if a > 1 && b == 2 {
		return true, nil
	}
	if err := g(); err != nil {
		return false, err
	}
	if !h(a) {
		s = s[1:]
	}
	switch {
	case h(a +
		b):
	}
	return len(s)+1 < b, nil
}
`

func TestEachEditChangesOnePlace(t *testing.T) {
	want := []string{
		"4: if !(a > 1 && b == 2) {",
		"4: if false && (a > 1 && b == 2) {",
		"4: if a > 1 || b == 2 {",
		"4: if a >= 1 && b == 2 {",
		"4: if a > 2 && b == 2 {",
		"4: if a > 1 && b != 2 {",
		"4: if a > 1 && b == 3 {",
		"5: return false, nil",
		"7: if err := g(); false && (err != nil) {",
		"7: if err := g(); err == nil {",
		"8: return true, err",
		"8: return false, nil",
		"10: if h(a) {",
		"11: s = s[2:]",
		"17: return len(s)+1 <= b, nil",
		"17: return len(s)-1 < b, nil",
	}
	var got []string
	for _, m := range must.Get(editsOf("p/a.go", []byte(source)))(t) {
		got = append(got, fmt.Sprintf("%d: %s", m.line, strings.TrimSpace(m.new)))
		lines := strings.Split(m.edited(source), "\n")
		if m.edits(source) != 1 || lines[m.line-1] != m.new || m.id != fmt.Sprintf("p/a.go:%d", m.line) {
			t.Errorf("%+v does not apply once", m)
		}
		lines[m.line-1] = m.old
		if strings.Join(lines, "\n") != source {
			t.Errorf("%+v changes more than its line", m)
		}
		if m.edits("\n"+source) != 0 {
			t.Errorf("%+v applies to another line", m)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestTheProductIsMutatedWhereItHasTests(t *testing.T) {
	file := &fstest.MapFile{Data: []byte(source)}
	tree := fstest.MapFS{
		"p/a.go": file, "p/a_test.go": file, "p/a_windows.go": file, "p/testdata/a.go": file,
		"p/q/a.go": file, "p/q/a_test.go": file, "none/a.go": file,
		"p/internal/r/a.go": file, "p/internal/s/a.go": file, "p/internal/s/a_test.go": file,
		"e2e/a.go": file, "e2e/a_test.go": file, "sandbox/engine/a.go": file, "sandbox/engine/a_test.go": file,
	}
	for _, c := range []struct {
		under string
		want  string
	}{
		{"", "p/a.go ./p, p/internal/r/a.go ./p, p/internal/s/a.go ./p/internal/s ./p, p/q/a.go ./p/q"},
		{"p", "p/a.go ./p"},
		{"./p/q/...", "p/q/a.go ./p/q"},
		{"p/internal/...", "p/internal/r/a.go ./p, p/internal/s/a.go ./p/internal/s ./p"},
		{"none", ""},
	} {
		var got []string
		for _, m := range must.Get(possible(tree, strings.Fields(c.under)))(t) {
			got = append(got, m.file+" "+m.pkg)
		}
		if got := strings.Join(slices.Compact(got), ", "); got != c.want {
			t.Errorf("below %q: %s\nwant %s", c.under, got, c.want)
		}
	}
}

// Tests that fail without an edit might have seen it.
func TestAnEditThatFailingTestsMightSeeIsUntried(t *testing.T) {
	const product = "package a\n\nfunc F() bool {\n\treturn true\n}\n"
	root := t.TempDir()
	for name, text := range map[string]string{"go.mod": "module example\n\ngo 1.24\n", "a/a.go": product,
		"a/a_test.go": "package a\n\nimport \"testing\"\n\nfunc TestNothing(*testing.T) {}\n"} {
		must.Do(t, os.MkdirAll(filepath.Join(root, filepath.Dir(name)), 0o700))
		must.Do(t, os.WriteFile(filepath.Join(root, name), []byte(text), 0o600))
	}
	m := must.Get(editsOf("a/a.go", []byte(product)))(t)[0]
	g := generation{runner: runner{root: root, bound: bound, tries: 1},
		red: map[string]string{"./a": "", "./b": "they fail"}}
	for pkg, want := range map[string]verdict{"./a": survived, "./b": untried, "./a ./b": untried} {
		m.pkg = pkg
		if got := must.Get(g.one(t.Context(), m))(t); got != want {
			t.Errorf("with the tests of %s: %s, want %s", pkg, got, want)
		}
	}
}

func TestASeedDrawsTheSameMutants(t *testing.T) {
	all := must.Get(editsOf("p/a.go", []byte(source)))(t)
	ids := func(seed uint64) string {
		var ids []string
		for _, m := range draw(all, seed) {
			ids = append(ids, m.id+m.new)
		}
		return strings.Join(ids, "\n")
	}
	one, again, two := ids(1), ids(1), ids(2)
	if one != again || one == two {
		t.Errorf("seed 1 draws\n%s\nand then\n%s\nand seed 2\n%s", one, again, two)
	}
	if n := strings.Count(one, "p/a.go"); n != 7 {
		t.Errorf("of 7 lines, %d mutants are drawn", n)
	}
}

func TestAnAcceptedEditIsNotTried(t *testing.T) {
	const good = "file a.go\n- if a > 1 {\n+ if a >= 1 {\nbecause it is the same"
	known := must.Get(parseAccepted("# about\n\n" + good + "\n"))(t)
	m := mutant{id: "a.go:3", file: "a.go", line: 3, old: "\tif a > 1 {", new: "\tif a >= 1 {", pkg: "./a", run: "."}
	if !known.has(m) {
		t.Errorf("%+v is not known", m)
	}
	for name, other := range map[string]mutant{
		"another file": {file: "b.go", old: m.old, new: m.new},
		"another edit": {file: m.file, old: m.old, new: "\tif a < 1 {"},
	} {
		if known.has(other) {
			t.Errorf("%s is taken for the same", name)
		}
	}
	for _, bad := range []string{strings.Replace(good, "because it is the same", "because ", 1), good + "\nmore"} {
		if _, err := parseAccepted(bad); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}

// An entry of a line that is gone would accept the same edit of a line that comes back for another reason.
func TestTheAcceptedEditsApply(t *testing.T) {
	known := must.Get(parseAccepted(string(must.Get(os.ReadFile("../../scripts/mutants-accepted.txt"))(t))))(t)
	for m := range known {
		text := must.Get(os.ReadFile("../../" + m.file))(t)
		found := slices.ContainsFunc(must.Get(editsOf(m.file, text))(t), func(o mutant) bool {
			return accepted{m: true}.has(o)
		})
		if !found {
			t.Errorf("%s: %q cannot become %q any more; remove the entry", m.file, m.old, m.new)
		}
	}
}
