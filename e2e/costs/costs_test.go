package main

import (
	"context"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
)

// TestNothingCostsMoreThanTheBaseline is what CI compares. It is no test of this package but of the program.
func TestNothingCostsMoreThanTheBaseline(t *testing.T) {
	var out strings.Builder
	err := command(t.Context(), []string{"--only", "allocations", "--file", "testdata/baseline.json"}, &out)
	if err != nil {
		t.Errorf("%v\n%s", err, out.String())
	}
}

// TestNothingTakesMoreInstructionsThanTheBaseline needs valgrind, or a machine with counters.
func TestNothingTakesMoreInstructionsThanTheBaseline(t *testing.T) {
	if _, err := findCounter(t.Context()); err != nil {
		t.Skipf("instructions are not compared: %v", err)
	}
	var out strings.Builder
	if err := command(t.Context(), []string{"--only", "instructions", "--file", "testdata/baseline.json"},
		&out); err != nil {
		t.Errorf("%v\n%s", err, out.String())
	}
}

func sample(allocs, bytes, instructions float64) map[string]figures {
	return map[string]figures{"leaf": {allocations: allocs, allocated: bytes,
		"instructions (valgrind)": instructions}}
}

func TestAGrowthOfMoreThanATenthFails(t *testing.T) {
	old := baseline{runtime.Version(), runtime.GOARCH, sample(100, 10_000, 1_000_000)}
	for _, c := range []struct {
		what string
		now  map[string]figures
		want string // in the error; "": there is none
	}{
		{"the same", sample(100, 10_000, 1_000_000), ""},
		{"less", sample(50, 5000, 1), ""},
		{"a tenth more", sample(110, 11_000, 1_100_000), ""},
		{"11 % more allocations", sample(111, 10_000, 1_000_000),
			"leaf: 111 allocations, +11.0 % over the baseline's 100 (at most 10 %)"},
		{"11 % more bytes", sample(100, 11_100, 1_000_000), "11100 bytes, +11.0 % over the baseline's 10000"},
		{"11 % more instructions", sample(100, 10_000, 1_110_000),
			"1110000 instructions (valgrind), +11.0 % over the baseline's 1000000"},
	} {
		err := compare(old, c.now).err()
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", c.what, err, c.want)
		}
	}
}

func TestAPacedBenchmarkMayGrowByAQuarter(t *testing.T) {
	const name = "audit row, committed"
	old := baseline{runtime.Version(), runtime.GOARCH, map[string]figures{name: {allocations: 100}}}
	if err := compare(old, map[string]figures{name: {allocations: 125}}).err(); err != nil {
		t.Errorf("a quarter more: %v", err)
	}
	const want = "126 allocations, +26.0 % over the baseline's 100 (at most 25 %)"
	if err := compare(old, map[string]figures{name: {allocations: 126}}).err(); err == nil ||
		!strings.Contains(err.Error(), want) {
		t.Errorf("more: %v, want %q", err, want)
	}
}

func TestTheFirstAllocationFails(t *testing.T) {
	old := baseline{runtime.Version(), runtime.GOARCH, sample(0, 0, 1000)}
	if err := compare(old, sample(1, 512, 1000)).err(); err == nil || !strings.Contains(err.Error(), "1 allocations") {
		t.Errorf("one allocation where there was none: %v", err)
	}
	if err := compare(old, sample(0, 24, 1000)).err(); err != nil {
		t.Errorf("a few bytes of a pool: %v", err)
	}
}

func TestWhatCannotBeComparedIsReported(t *testing.T) {
	old := baseline{runtime.Version(), runtime.GOARCH, sample(1, 2, 3)}
	now := sample(1, 2, 3)
	now["something new"] = figures{allocations: 7}
	now["leaf"]["instructions (perf)"] = 5
	var out strings.Builder
	c := compare(old, now)
	if c.print(&out); c.err() != nil {
		t.Error(c.err())
	}
	for _, want := range []string{"something new: the baseline has no allocations",
		"the baseline has no instructions (perf)"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the report lacks %q:\n%s", want, out.String())
		}
	}
	// Another architecture has other instructions.
	old.Arch = "another"
	out.Reset()
	if compare(old, now).print(&out); strings.Contains(out.String(), "instructions (valgrind)") ||
		!strings.Contains(out.String(), "the baseline is of") {
		t.Errorf("the report is:\n%s", out.String())
	}
}

func TestWithoutACounterTheReasonIsGiven(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, err := findCounter(context.Background())
	if err == nil || err.Error() != "valgrind is not installed; perf is not installed" {
		t.Errorf("findCounter: %v", err)
	}
}

func TestANewBaselineKeepsWhatWasNotCounted(t *testing.T) {
	path := filepath.Join(t.TempDir(), "baseline.json")
	name := "leaf"
	old := baseline{Figures: sample(100, 10_000, 1_000_000)}
	must.Do(t, writeBaseline(path, old, map[string]figures{name: {allocations: 60.4, allocated: 5000}}))
	got, err := readBaseline(path)
	if f := got.Figures[name]; err != nil || f[allocations] != 60 || f["instructions (valgrind)"] != 1_000_000 {
		t.Errorf("the baseline is now %+v, %v", got, err)
	}
}

func TestOutputsOfCountersAreRead(t *testing.T) {
	for i, out := range []string{"==12== \n==12== I   refs:      12,399,788\n", "4711,,instructions:u,100,100.00,,\n"} {
		if n, err := counters[i].count([]byte(out)); err != nil || n != []float64{12_399_788, 4711}[i] {
			t.Errorf("%s: %v, %v", counters[i].name, n, err)
		}
	}
	if _, err := counters[1].count([]byte("<not supported>,,instructions:u,0,100.00,,\n")); err == nil {
		t.Error("perf without a counter counts")
	}
	line := "BenchmarkExchange \t     500\t    66071 ns/op\t     12199 B/op\t     194 allocs/op\n"
	if v, ok := reported(line, "allocs/op"); !ok || v != 194 {
		t.Errorf("reported: %v, %v", v, ok)
	}
}
