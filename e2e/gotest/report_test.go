package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
)

const imports = "\n\nimport (\n\t\"fmt\"\n\t\"os\"\n\t\"testing\"\n)\n\nvar _ = fmt.Sprint(os.Args)\n\n"

// module writes a module of packages, each a test file, and goes there.
func module(t *testing.T, packages map[string]string) {
	t.Helper()
	dir := t.TempDir()
	files := map[string]string{"go.mod": "module example.test/m\n\ngo 1.26\n"}
	for name, body := range packages {
		files[name+"/x_test.go"] = "package " + name + imports + body
	}
	for name, text := range files {
		must.Do(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700))
		must.Do(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	t.Chdir(dir)
}

// timeless replaces the times that tests took: on a busy machine none is 0.
func timeless(text string) string {
	return regexp.MustCompile(`\(\d+\.\d\ds\)`).ReplaceAllString(text, "(0.00s)")
}

func TestWhatAReaderNeedsIsPrinted(t *testing.T) {
	module(t, map[string]string{
		"quiet": `func TestA(t *testing.T) { fmt.Println("not needed"); t.Log("not needed either") }`,
		"bare":  `func TestB(t *testing.T) { t.Skip() }`,
		"skips": `func TestC(t *testing.T) { t.Run("case", skip) }
func skip(t *testing.T) { t.Log("looking"); t.Skip("there is no\n  frobnicator") }`,
		"red": `func TestD(t *testing.T) {
	t.Run("well", func(t *testing.T) { t.Log("of no interest") })
	t.Run("ill", func(t *testing.T) { t.Log("what led to it"); t.Error("the cause:\ntwo lines") })
}
func TestE(t *testing.T) { fmt.Println("WARNING: from a process"); t.Log("beside it") }
func TestF(t *testing.T) { t.Log("calm") }`,
		"dies": `func TestG(t *testing.T) { t.Log("before"); panic("it broke") }`,
		"exits": `func TestMain(m *testing.M) { m.Run(); fmt.Println("left something behind"); os.Exit(3) }
func TestH(t *testing.T) {}`,
		"wrong": `func TestI(t *testing.T) { undefined() }`,
		"whole": `func TestMain(m *testing.M) { fmt.Fprintln(os.Stderr, "whole: not run: no namespaces") }`,
		"short": `func TestK(t *testing.T) { for _, n := range []string{"a", "b", "c", "d"} { t.Run(n, skip) } }
func skip(t *testing.T) { t.Skip("too long") }`,
		"silent": `func TestJ(t *testing.T) { t.Fail() }`,
	})
	var out strings.Builder
	code, err := run(t.Context(), []string{"-count=1", "-p=1", "./..."}, &out)
	if err != nil || code != 1 {
		t.Errorf("run = %d, %v; want 1", code, err)
	}
	got := timeless(out.String())
	for _, want := range []string{
		"ok  \texample.test/m/quiet\t", "ok  \texample.test/m/bare\t", "ok  \texample.test/m/skips\t",
		"    x_test.go:13: what led to it\n    x_test.go:13: the cause:\n        two lines\n",
		"--- FAIL: TestD/ill (0.00s)\n", "--- FAIL: TestD (0.00s)\n",
		"WARNING: from a process\n", "FAIL\texample.test/m/red\t",
		"panic: it broke", "    x_test.go:11: before\n", "FAIL\texample.test/m/dies\t",
		"left something behind\n", "FAIL\texample.test/m/exits\t",
		"undefined: undefined\n", "FAIL\texample.test/m/wrong [build failed]\n", "--- FAIL: TestJ (0.00s)\n",
		"skipped: 7\n\texample.test/m/bare TestB: no reason\n\texample.test/m/short: 4 tests: too long\n" +
			"\texample.test/m/skips TestC/case: there is no frobnicator\n\twhole: no namespaces\n",
		"failed: 6\n\texample.test/m/dies TestG\n\texample.test/m/exits\n" +
			"\texample.test/m/red TestD\n\texample.test/m/red TestD/ill\n" +
			"\texample.test/m/silent TestJ\n\texample.test/m/wrong\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("it does not print %q", want)
		}
	}
	for _, noise := range []string{
		"not needed", "of no interest", "calm", "=== RUN", "=== NAME", "TestF", "--- PASS: TestD/well",
	} {
		if strings.Contains(got, noise) {
			t.Errorf("it prints %q", noise)
		}
	}
	if t.Failed() {
		t.Log(got)
	}
}

func TestAllGreenIsOneLineAPackage(t *testing.T) {
	module(t, map[string]string{"one": `func TestA(t *testing.T) {}`, "two": `func TestB(t *testing.T) {}`})
	var out strings.Builder
	code, err := run(t.Context(), []string{"-count=1", "./..."}, &out)
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if err != nil || code != 0 || len(lines) != 2 || !strings.HasPrefix(lines[0], "ok  \t") {
		t.Errorf("run = %d, %v with %q; want 0 and two lines", code, err, out.String())
	}
}

func TestRunsSideBySideShareAReport(t *testing.T) {
	module(t, map[string]string{
		"one":   `func TestA(t *testing.T) { t.Skip(os.Getenv("REASON")) }`,
		"two":   `func TestB(t *testing.T) { t.Skip(os.Getenv("REASON")) }`,
		"three": `func TestC(t *testing.T) { t.Fail() }`,
	})
	var out strings.Builder
	args := "REASON=first A_2= -count=1 ./one :: REASON=second ./two ::  -count=1 ./three"
	code, err := run(t.Context(), strings.Fields(args), &out)
	if err != nil || code != 1 {
		t.Errorf("run = %d, %v; want the 1 of the run that fails", code, err)
	}
	want := "skipped: 2\n\texample.test/m/one TestA: first\n\texample.test/m/two TestB: second\n" +
		"failed: 1\n\texample.test/m/three TestC\n"
	if !strings.HasSuffix(out.String(), want) {
		t.Errorf("printed %q, want at its end %q", out.String(), want)
	}
}

func TestARunBeginsWhenTheOneBeforeItHasEnded(t *testing.T) {
	module(t, map[string]string{
		"one": `func TestA(t *testing.T) { if os.Mkdir("../done", 0o700) != nil { t.Fail() } }`,
		"two": `func TestB(t *testing.T) { if os.Remove("../done") != nil { t.Fail() } }`,
	})
	var out strings.Builder
	args := "-count=1 ./one , -count=1 ./two , -count=1 -run=TestA ./one"
	if code, err := run(t.Context(), strings.Fields(args), &out); err != nil || code != 0 {
		t.Errorf("run = %d, %v with %s; want 0", code, err, out.String())
	}
}

// TestMain is also what go test runs instead of a test program of a module below.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == measured {
		os.Exit(measure(os.Args[2:]))
	}
	os.Exit(m.Run())
}

func TestTheProcessorTimeOfAPackageIsReported(t *testing.T) {
	module(t, map[string]string{
		"busy": `func TestA(t *testing.T) { n := uint64(os.Getpid()); for i := uint64(0); i < 1<<28; i++ { n += n<<3 ^ i }
	fmt.Print("without an end of line ", n) }`,
		"red": `func TestB(t *testing.T) { t.Error("it is red") }`,
	})
	var out strings.Builder
	code, err := run(t.Context(), strings.Fields("-cpu A=b -count=1 ./busy :: -count=1 ./red"), &out)
	if code != 1 || err != nil {
		t.Errorf("run = %d, %v; want 1", code, err)
	}
	if got := out.String(); !regexp.MustCompile(`(?m)^ok  \texample.test/m/busy\t.*\tCPU [0-9.]+s$`).MatchString(got) ||
		!strings.Contains(got, "it is red") || strings.Contains(got, cpuMark) ||
		!regexp.MustCompile(`(?m)^processor time of the tests: [0-9]+ s$`).MatchString(got) {
		t.Errorf("printed %q", got)
	}
}

func TestNoPackageIsNoSuccess(t *testing.T) {
	module(t, nil)
	if code, err := run(t.Context(), []string{"./nowhere"}, &strings.Builder{}); err != nil || code != 1 {
		t.Errorf("run = %d, %v; want go test's own 1", code, err)
	}
}

// A process that is killed reports neither its test nor its package.
func TestWhatHasNotEndedCountsAsFailed(t *testing.T) {
	var in, out strings.Builder
	enc := json.NewEncoder(&in)
	for _, e := range []event{
		{Action: "run", Package: "m/p", Test: "TestA"},
		{Action: "output", Package: "m/p", Test: "TestA", Output: "    a_test.go:1: so far\n"},
	} {
		must.Do(t, enc.Encode(e))
	}
	in.WriteString("no event at all\n{\"half\":")
	p := newPrinter(&out)
	err := eachLine(bufio.NewReader(strings.NewReader(in.String())), p.line)
	p.unended()
	must.Do(t, errors.Join(err, p.report()))
	if want := "no event at all\n{\"half\":    a_test.go:1: so far\nfailed: 1\n\tm/p TestA\n"; out.String() != want {
		t.Errorf("printed %q, want %q", out.String(), want)
	}
}

func TestTheSlowestTestsAreListedWhereTimeIsMeasured(t *testing.T) {
	events := `{"Action":"pass","Package":"m/p","Test":"TestA","Elapsed":2.5}
{"Action":"pass","Package":"m/p","Test":"TestB/part","Elapsed":9}
{"Action":"fail","Package":"m/p","Test":"TestB","Elapsed":11.04}
{"Action":"pass","Package":"m/p","Test":"TestC","Elapsed":0.99}
`
	for mark, want := range map[string]string{
		cpuMark + "1.5\\n": "slowest: 2\n\t  11.0s m/p TestB\n\t   2.5s m/p TestA\n",
		"":                 "",
	} {
		var out strings.Builder
		p := newPrinter(&out)
		for line := range strings.Lines(events + `{"Action":"output","Package":"m/p","Output":"` + mark + `"}
{"Action":"fail","Package":"m/p"}
`) {
			p.line([]byte(line))
		}
		must.Do(t, p.report())
		if _, got, _ := strings.Cut(out.String(), "processor time of the tests: 2 s\n"); got != want {
			t.Errorf("with %q it prints %q, want %q", mark, got, want)
		}
	}
}
