package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/e2e/harness"
	"github.com/ALRubinger/aileron/e2e/must"
)

func TestMain(m *testing.M) {
	if os.Getenv(partEnv) != "" { // started by startPart
		if err := command(context.Background(), os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// TestEverySubjectAnswersEveryScenarioRightly runs the bench with turns that are too short to measure anything: what it
// asserts is that all answers are right, that the origin saw the credential from aileron and from no other, and that
// each request has its audit rows. Each commit's run plays A1 and an eighth of the other scenarios.
func TestEverySubjectAnswersEveryScenarioRightly(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the bench reads /proc: it measures on Linux only")
	}
	o := &options{aileron: filepath.Join(t.TempDir(), "aileron"), markdown: filepath.Join(t.TempDir(), "out.md"), turns: 1,
		window: time.Millisecond, share: 10}
	must.Do(t, harness.Build(filepath.Dir(o.aileron), map[string]string{"aileron": "../../cmd/aileron"}))
	for _, sc := range scenarios {
		if strings.HasPrefix(sc.id, "U") { // that agents start at their prompt is tested in e2e
			continue
		}
		t.Run(sc.id, func(t *testing.T) {
			if sc.id != "A1" { // what all others are made with
				harness.Turn(t)
			}
			o.scenarios = append(o.scenarios, sc.id)
		})
	}
	var out, progress strings.Builder
	if err := measure(t.Context(), o, &out, &progress); err != nil {
		t.Fatalf("%v\n%s%s", err, progress.String(), out.String())
	}
	table := must.Get(os.ReadFile(o.markdown))(t)
	for _, sc := range scenarios {
		if !slices.Contains(o.scenarios, sc.id) || sc.needs != nil && sc.needs(t.Context()) != nil {
			continue
		}
		if !strings.Contains(string(table), "**"+sc.id+"**") {
			t.Errorf("the table lacks %s:\n%s", sc.id, table)
		}
	}
	// What this machine cannot measure is named otherwise.
	if _, parts := harness.TurnOf(); parts == 1 && strings.Contains(string(table), "| not measured |") {
		t.Errorf("a goal was not measured:\n%s", table)
	}
}

// What a scenario failed with is the error of the run, and its requests are not counted.
func TestAFailedScenarioIsTheErrorOfTheRun(t *testing.T) {
	r := &report{}
	for _, id := range []string{"A1", "T"} {
		res := newResult(scenario{id: id})
		res.add("aileron", 0, nil, nil)
		r.results = append(r.results, res)
	}
	r.results[0].add("mitmproxy", 1, nil, errors.New("it ended"))
	if err := r.failures("aileron"); err != nil {
		t.Errorf("without a failure: %v", err)
	}
	r.results[1].add("aileron", 1, nil, errors.New("the second session did not start"))
	const want = "T through aileron failed: the second session did not start"
	if err := r.failures("aileron"); err == nil || err.Error() != want {
		t.Errorf("failures = %v, want %q", err, want)
	}
}

func TestTheRunGoesToItsPlacesInTheDocuments(t *testing.T) {
	root := t.TempDir()
	for _, name := range []string{"docs/performance.md", "README.md"} {
		path := filepath.Join(root, name)
		must.Do(t, os.MkdirAll(filepath.Dir(path), 0o700))
		must.Do(t, os.WriteFile(path, []byte("above\n"+markerBegin+"old\n"+markerEnd+"below\n"), 0o600))
	}
	must.Do(t, sampleReport().publish(root))
	for name, begins := range map[string]string{
		"docs/performance.md": "above\n" + markerBegin + "![",
		"README.md":           "above\n" + markerBegin + "`just bench`, 2026-01-02",
	} {
		raw, _ := os.ReadFile(filepath.Join(root, name))
		text := string(raw)
		if !strings.HasPrefix(text, begins) || !strings.HasSuffix(text, markerEnd+"below\n") ||
			strings.Contains(text, "old") {
			t.Errorf("%s is now:\n%s", name, text)
		}
	}
	must.Do(t, os.WriteFile(filepath.Join(root, "README.md"), []byte("no place\n"), 0o600))
	if err := sampleReport().publish(root); err == nil || !strings.Contains(err.Error(), "README.md lacks the lines") {
		t.Errorf("without its place in the README: %v", err)
	}
}

func TestAVerdictIsTheMediansRatio(t *testing.T) {
	ratio, floor, itself := times("m", 1.25), timesAtLeast("m", 0.8), atMost("m", 45)
	for _, c := range []struct {
		m       metric
		aileron []float64
		want    string
	}{
		{ratio, []float64{12, 900, 11}, "met"},
		{ratio, []float64{13, 1, 900}, "missed"},
		{floor, []float64{8, 8, 8}, "met"},
		{floor, []float64{7.9}, "missed"},
		{itself, []float64{45}, "met"},
		{itself, []float64{46}, "missed"},
		{ratio, nil, "not measured"},
	} {
		r := newResult(scenario{})
		for n, v := range c.aileron {
			r.add("aileron", n+1, figures{"m": v}, nil)
		}
		r.add("aileron", 0, figures{"m": 1e9}, nil) // the warm-up does not count
		r.add("light", 1, figures{"m": 10}, nil)
		if got := r.verdict(c.m); got != c.want {
			t.Errorf("verdict(%+v) of %v = %s, want %s", c.m, c.aileron, got, c.want)
		}
	}
}
