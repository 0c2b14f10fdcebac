package main

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
)

func TestTheListIsWellFormed(t *testing.T) {
	text := must.Get(os.ReadFile("../../scripts/mutants.txt"))(t)
	all := must.Get(parse(string(text)))(t)
	if len(all) < 60 {
		t.Errorf("the list has %d mutants, want 60 at least", len(all))
	}
	for _, m := range all {
		if dir, found := strings.CutPrefix(m.pkg, "./"); !found || !hasTests(filepath.Join("../..", dir)) {
			t.Errorf("%s: %s is no package with tests", m.id, m.pkg)
		}
		// A package embeds the scripts and the schemas.
		source := strings.HasSuffix(m.file, ".go") || strings.HasSuffix(m.file, ".sh") ||
			strings.HasSuffix(m.file, ".schema.json") || strings.HasSuffix(m.file, ".sql")
		if !source || strings.HasSuffix(m.file, "_test.go") {
			t.Errorf("%s edits %s, which is no defence", m.id, m.file)
		}
	}
	t.Chdir("../..")
	must.Do(t, check(all))
	must.Do(t, compiles(t.Context(), all))
}

func hasTests(dir string) bool {
	found, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	return err == nil && len(found) > 0
}

func TestAnEntryIsWhole(t *testing.T) {
	const good = "A a defence\nfile a.go\n- x\n+ y\ntest ./a TestA"
	want := mutant{id: "A", defence: "a defence", file: "a.go", old: "x", new: "y", pkg: "./a", run: "TestA"}
	if all, err := parse("# about\n\n" + good + "\n"); err != nil || len(all) != 1 || all[0] != want {
		t.Errorf("got %+v, %v", all, err)
	}
	for name, bad := range map[string]string{
		"twice":           good + "\n\n" + good,
		"no test":         strings.Replace(good, "test ./a TestA", "test ./a", 1),
		"no edit":         strings.Replace(good, "+ y", "+ x", 1),
		"no defence":      strings.Replace(good, "A a defence", "A", 1),
		"a line too many": good + "\nmore",
		"another order":   strings.Replace(good, "file a.go", "+ y", 1),
	} {
		if _, err := parse(bad); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
}

func TestAnEditAppliesOnceAndIsTakenBack(t *testing.T) {
	root := t.TempDir()
	path := filepath.Join(root, "a.go")
	write := func(text string) {
		must.Do(t, os.WriteFile(path, []byte(text), 0o600))
	}
	read := func() string {
		text := must.Get(os.ReadFile(path))(t)
		return string(text)
	}
	m := mutant{file: "a.go", old: "if bad {", new: "if false {"}
	write("if bad {\n}\n")
	undo, err := m.apply(root)
	if err != nil || read() != "if false {\n}\n" {
		t.Fatalf("got %q, %v", read(), err)
	}
	if err := undo(); err != nil || read() != "if bad {\n}\n" {
		t.Errorf("taken back: %q, %v", read(), err)
	}
	for name, text := range map[string]string{"gone": "x", "twice": "if bad {\nif bad {"} {
		write(text)
		if _, err := m.apply(root); err == nil || read() != text {
			t.Errorf("%s: %v, %q", name, err, read())
		}
	}
	if _, err := (mutant{file: "b.go", old: "x"}).apply(root); err == nil {
		t.Error("a file that is not there is edited")
	}
}

// A run of all tests exports what it built from sources that have no edit, and which part of some tests it makes:
// a test that takes either cannot see that its defence is gone.
func TestATestOfAMutantTakesNothingOfARunOfAll(t *testing.T) {
	got := alone([]string{"HOME=/h", "AILERON_TEST_PROGRAMS=/p", "AILERON_TEST_TURN=1/4", "AILERON_TEST_TMP=/t"})
	if want := []string{"HOME=/h", "AILERON_TEST_TMP=/t"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestWhatGoTestSaysIsJudged(t *testing.T) {
	for name, c := range map[string]struct {
		out          string
		passed, late bool
		want         verdict
	}{
		"passed":      {"--- PASS: TestA (0.00s)\nPASS\n", true, false, survived},
		"failed":      {"    a_test.go:3: got 1, want 2\n--- FAIL: TestA (0.00s)\nFAIL\n", false, false, killed},
		"panicked":    {"panic: runtime error: index out of range\ngoroutine 1 [running]:\nFAIL\n", false, false, killed},
		"timed out":   {"panic: test timed out after 1m\n", false, false, hung},
		"killed late": {"=== RUN TestA\n", false, true, hung},
		"no end":      {"attacks: x has not ended after 4m:\n", false, false, hung},
		"a story": {"    --- FAIL: TestStories/a (0.10s)\n        testscript.go:609: # Words. (0.1s)\n" +
			"            > stdout x\n            FAIL: testdata/script/a.txtar:3: no match for `x` found in stdout\n" +
			"FAIL\n", false, false, killed},
		"no message":   {"--- FAIL: TestA (0.00s)\nFAIL\n", false, false, hung},
		"no compiling": {"FAIL a [build failed]\n", false, false, stale},
		"no such test": {"testing: warning: no tests to run\nPASS\n", true, false, untried},
		"skipped":      {"--- SKIP: TestA (0.00s)\nPASS\n", true, false, untried},
	} {
		if got, why := judge(c.out, c.passed, c.late); got != c.want {
			t.Errorf("%s: %s (%s), want %s", name, got, why, c.want)
		}
	}
}

func TestShardsAndUnionsLoseNothing(t *testing.T) {
	all := []mutant{
		{id: "a", pkg: "./p", run: "TestA"}, {id: "b", pkg: "./p", run: "TestB"},
		{id: "c", pkg: "./p", run: "TestC/x"}, {id: "d", pkg: "./p", run: "TestC/y"},
		{id: "e", pkg: "./q", run: "TestA"},
	}
	seen := map[string]bool{}
	for k := 1; k <= 3; k++ {
		for _, m := range shard(all, k, 3) {
			seen[m.id] = true
		}
	}
	if len(seen) != len(all) {
		t.Errorf("the shards hold %v", seen)
	}
	if got := strings.Join(union(all, "./p"), " "); got != "(TestA)|(TestB) TestC/(x)|(y)" {
		t.Errorf("the union is %q", got)
	}
}

func TestAnEditThatDoesNotCompileIsNamed(t *testing.T) {
	t.Chdir("../..")
	one := mutant{id: "ONE", file: "e2e/mutants/list.go", old: "errors.Join(errStale, err)", new: "errStale"}
	must.Do(t, compiles(t.Context(), []mutant{one}))
	two, three := one, one
	two.id, two.new = "TWO", "unknown(err)"
	three.id, three.old, three.new = "THREE", "strings.Count(text, m.old)", "1 +"
	for _, m := range []mutant{two, three} {
		if err := compiles(t.Context(), []mutant{one, m}); !errors.Is(err, errNotCompiling) ||
			!strings.Contains(err.Error(), m.id) || strings.Contains(err.Error(), one.id) {
			t.Errorf("compiles returns %v, want that %s does not compile, and no other", err, m.id)
		}
	}
}
