package main

import (
	"strings"
	"testing"
)

// once fails when it is run for the first time, in whichever process.
const once = `
func once(t *testing.T) {
	f, err := os.OpenFile("ran."+fmt.Sprintf("%x", t.Name()), os.O_CREATE|os.O_EXCL, 0o600)
	if err == nil {
		f.Close()
		t.Error("the first time")
	}
}
`

func TestAFlakyTestIsNamedAndDoesNotFailTheRun(t *testing.T) {
	module(t, map[string]string{
		"a": once + `func TestA(t *testing.T) { t.Run("case", once) }`,
		"b": once + `func TestB(t *testing.T) { once(t) }`,
	})
	var out strings.Builder
	code, err := run(t.Context(), strings.Fields("-again -count=1 ./a :: REASON=x -count=1 ./b"), &out)
	if code != 0 || err != nil {
		t.Errorf("run = %d, %v; want 0", code, err)
	}
	for _, want := range []string{
		"again   \texample.test/m/a: failed, and is run again at the end: TestA\n",
		"flaky   \texample.test/m/a: what failed beside the others has passed alone\n",
		"\t| --- FAIL: TestA/case (0.00s)\n", "\t|     x_test.go:16: the first time\n",
		"flaky: 3\n\texample.test/m/a TestA\n\texample.test/m/a TestA/case\n\texample.test/m/b TestB\n",
	} {
		if !strings.Contains(timeless(out.String()), want) {
			t.Errorf("it does not print %q", want)
		}
	}
	if strings.Contains(out.String(), "\n--- FAIL") || strings.Contains(out.String(), "failed:") {
		t.Error("it prints a failure that does not count")
	}
	if t.Failed() {
		t.Log(out.String())
	}
}

func TestASecondFailureCounts(t *testing.T) {
	module(t, map[string]string{
		"flaky":  once + `func TestA(t *testing.T) { once(t) }`,
		"broken": `func TestB(t *testing.T) { t.Error("each time") }`,
		"skips": once + `func TestC(t *testing.T) {
	f, err := os.OpenFile("ran", os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil { t.Skip("not the second time") }
	f.Close(); t.Error("the first time") }`,
	})
	var out strings.Builder
	code, err := run(t.Context(), strings.Fields("-again -count=1 ./..."), &out)
	if code != 1 || err != nil {
		t.Errorf("run = %d, %v; want 1", code, err)
	}
	want := "flaky: 1\n\texample.test/m/flaky TestA\n" +
		"failed: 2\n\texample.test/m/broken TestB\n\texample.test/m/skips TestC\n"
	if !strings.HasSuffix(out.String(), want) || strings.Count(out.String(), "each time") != 2 {
		t.Errorf("printed %q; want at its end %q, and both failures of TestB", out.String(), want)
	}
}

// What a second run would hide fails the first.
func TestWhatIsNeverRunAgain(t *testing.T) {
	many := once
	for _, name := range []string{"A", "B", "C", "D", "E", "F"} {
		many += "func Test" + name + "(t *testing.T) { once(t) }\n"
	}
	for name, c := range map[string]struct{ flags, body string }{
		"a race": {"-race", `func TestA(t *testing.T) {
	if _, err := os.Stat("ran"); err == nil { return }
	_, _ = os.Create("ran")
	n, done := 0, make(chan bool)
	go func() { n++; close(done) }()
	n++
	<-done
}`},
		"a panic": {"", `func TestA(t *testing.T) { if _, err := os.Create("ran"); err == nil { panic("it broke") } }`},
		"the time-out": {"-timeout=1s", once + `
func TestA(t *testing.T) { once(t) }
func TestB(t *testing.T) { select {} }`},
		"the process":  {"", `func TestMain(m *testing.M) { m.Run(); os.Exit(3) }`},
		"too many":     {"", many},
		"the compiler": {"", `func TestA(t *testing.T) { undefined() }`},
	} {
		t.Run(name, func(t *testing.T) {
			module(t, map[string]string{"a": c.body})
			var out strings.Builder
			code, err := run(t.Context(), strings.Fields("-again CGO_ENABLED=1 -count=1 "+c.flags+" ./a"), &out)
			if code != 1 || err != nil || strings.Contains(out.String(), "flaky") {
				t.Errorf("run = %d, %v and %q; want 1 and nothing flaky", code, err, out.String())
			}
		})
	}
}
