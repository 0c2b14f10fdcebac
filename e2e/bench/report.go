package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"time"
	"unicode/utf8"
)

// result is what one scenario measured.
type result struct {
	scenario
	samples map[string]map[string][]float64 // by subject and metric
	left    map[string]string               // subjects that are out of it, and why
}

func newResult(sc scenario) *result {
	return &result{scenario: sc, samples: map[string]map[string][]float64{}, left: map[string]string{}}
}

// add keeps a turn's figures; those of turn 0 are the warm-up's.
func (r *result) add(subject string, n int, f figures, err error) {
	if err != nil {
		r.left[subject] = err.Error()
		return
	}
	if n == 0 {
		return
	}
	if r.samples[subject] == nil {
		r.samples[subject] = map[string][]float64{}
	}
	for name, v := range f {
		r.samples[subject][name] = append(r.samples[subject][name], v)
	}
}

// value is the median of a subject's turns.
func (r *result) value(subject, metric string) (float64, bool) {
	v := slices.Sorted(slices.Values(r.samples[subject][metric]))
	if len(v) == 0 {
		return 0, false
	}
	if n := len(v); n%2 == 0 {
		return (v[n/2-1] + v[n/2]) / 2, true
	}
	return v[len(v)/2], true
}

// cell is a subject's figure and its ratio.
func (r *result) cell(subject string, m metric) string {
	v, ok := r.value(subject, m.name)
	if !ok {
		return "–"
	}
	base, ok := r.value(reference, m.name)
	if !ok || base == 0 || subject == reference {
		return number(v)
	}
	return number(v) + " (" + number(v/base) + "×)"
}

// report is all results of a run.
type report struct {
	began    time.Time
	load     string // of the machine, before the run
	options  *options
	subjects []*subject
	results  []*result
	notes    []string
}

// failures returns what failed with a subject, scenario by scenario; nil: nothing.
func (r *report) failures(subject string) error {
	var all []error
	for _, res := range r.results {
		if why := res.left[subject]; why != "" {
			all = append(all, fmt.Errorf("%s through %s failed: %s", res.id, subject, why))
		}
	}
	return errors.Join(all...)
}

// print writes one scenario's table for a terminal.
func (r *report) print(w io.Writer, res *result) {
	names := r.names(res.scenario)
	width := len("CPU ms/1000 events")
	for _, m := range res.metrics {
		width = max(width, utf8.RuneCountInString(m.name))
	}
	fmt.Fprintf(w, "\n%s  %s\n%-*s", res.id, res.what, width, "")
	for _, name := range names {
		fmt.Fprintf(w, " %14s", name)
	}
	fmt.Fprintln(w)
	for _, m := range res.metrics {
		fmt.Fprintf(w, "%-*s", width, m.name)
		for _, name := range names {
			fmt.Fprintf(w, " %14s", res.cell(name, m))
		}
		if m.bound != 0 {
			fmt.Fprintf(w, "  %s: %s", m.goal(), res.verdict(m))
		}
		fmt.Fprintln(w)
	}
	for _, name := range names {
		if why := res.left[name]; why != "" {
			fmt.Fprintf(w, "  %s: %s\n", name, why)
		}
	}
}

// names returns the subjects of a scenario, in their order.
func (r *report) names(sc scenario) []string {
	var names []string
	for _, s := range r.subjects {
		if !sc.alone || s.name == "aileron" {
			names = append(names, s.name)
		}
	}
	return names
}

// summary counts the verdicts, and lists the goals that were missed, worst first.
func (r *report) summary() string {
	missed := ""
	if !slices.ContainsFunc(r.subjects, func(s *subject) bool { return s.name == "aileron" }) {
		return fmt.Sprint(time.Since(r.began).Round(time.Second))
	}
	for _, j := range r.ranking() {
		if j.verdict(j.metric) == "met" {
			continue
		}
		missed += fmt.Sprintf("\n  %s× its goal: %s %s %s, goal %s", j.times(), j.id, j.name,
			j.cell("aileron", j.metric), j.goal())
	}
	return fmt.Sprintf("%s %v%s", r.count(), time.Since(r.began).Round(time.Second), missed)
}

// count returns how many goals were met, as a sentence.
func (r *report) count() string {
	met, ranking := 0, r.ranking()
	for _, j := range ranking {
		if j.verdict(j.metric) == "met" {
			met++
		}
	}
	return fmt.Sprintf("%d of %d goals met.", met, len(ranking))
}
