package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/e2e/must"
)

var update = flag.Bool("update", false, "write the golden files of testdata anew")

// sampleReport is a run of two scenarios: one goal is met and two are missed, one of them because of an error.
func sampleReport() *report {
	r := &report{began: time.Date(2026, 1, 2, 3, 4, 0, 0, time.UTC), load: "0.10 0.20 0.30",
		options: &options{turns: 5, window: time.Second}}
	for _, name := range []string{"connect", "goproxy", reference, "aileron"} {
		r.subjects = append(r.subjects, &subject{name: name})
	}
	small := newResult(scenario{id: "A1", what: "small GETs <1 connection>",
		metrics: []metric{times("CPU", 1.3), timesAtLeast("rate", 0.8), figure("p50")}})
	for name, v := range map[string][3]float64{
		"connect": {2, 300, 5}, "goproxy": {11, 90, 6}, reference: {10, 100, 7}, "aileron": {12, 20, 8},
	} {
		small.add(name, 1, figures{"CPU": v[0], "rate": v[1], "p50": v[2]}, nil)
	}
	idle := newResult(scenario{id: "G", what: "an idle tunnel", metrics: []metric{atMost("KiB", 32)}})
	idle.add("goproxy", 1, figures{"KiB": 1e9}, nil)
	idle.add("aileron", 1, nil, errors.New("it has gone"))
	r.results = []*result{small, idle}
	return r
}

func TestThePlotIsTheGoldenOne(t *testing.T) {
	got, err := sampleReport().svg()
	if err != nil {
		t.Fatal(err)
	}
	golden := filepath.Join("testdata", "plot.svg")
	if *update {
		must.Do(t, os.WriteFile(golden, got, 0o644))
	}
	want := must.Get(os.ReadFile(golden))(t)
	if !bytes.Equal(got, want) {
		t.Errorf("the plot differs from %s (go test ./e2e/bench -run Golden -update writes it anew):\n%s", golden, got)
	}
	for d := xml.NewDecoder(bytes.NewReader(got)); err == nil; {
		_, err = d.Token()
	}
	if !errors.Is(err, io.EOF) {
		t.Errorf("the plot is no XML: %v", err)
	}
}

func TestGoalsAreListedWorstFirst(t *testing.T) {
	r := sampleReport()
	var got []string
	for _, j := range r.ranking() {
		got = append(got, j.id+" "+j.name+" "+j.times())
	}
	if text := strings.Join(got, ", "); text != "G KiB ?, A1 rate 4.00, A1 CPU 0.92" {
		t.Errorf("the ranking is %s", text)
	}
	text := r.markdown()
	for _, want := range []string{
		"| **G** an idle tunnel | KiB | – | ≤ 32.0 | ? | not measured |\n" +
			"| **A1** small GETs <1 connection> | rate | 20.0 (0.20×) | ≥ 0.80 × light | 4.00 | missed |\n",
		"\nG aileron: it has gone.\n",
		"| **A1** small GETs <1 connection> | CPU | 2.00 (0.20×) | 11.0 (1.10×) | 10.0 | 12.0 (1.20×) |\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the document lacks %q:\n%s", want, text)
		}
	}
	text = r.readme()
	for _, want := range []string{
		"1 of 3 goals met.", "| worst first | | aileron | goproxy | goal |\n",
		"| small GETs <1 connection> | rate, × light | 0.20 | 0.90 | 0.80 |\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the README's part lacks %q:\n%s", want, text)
		}
	}
}
