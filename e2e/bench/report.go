package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"time"
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

// base is the subject that a metric is compared with.
func (m metric) base() string {
	if m.of != "" {
		return m.of
	}
	return "light"
}

// cell is a subject's figure and its ratio.
func (r *result) cell(subject string, m metric) string {
	v, ok := r.value(subject, m.name)
	if !ok {
		return "–"
	}
	base, ok := r.value(m.base(), m.name)
	if !ok || base == 0 || subject == m.base() {
		return number(v)
	}
	return number(v) + " (" + number(v/base) + "×)"
}

// goal is the goal in words, and verdict whether aileron meets it.
func (m metric) goal() string {
	if m.bound == 0 {
		return ""
	}
	sign, what := "≤ ", ""
	if m.atLeast {
		sign = "≥ "
	}
	if m.of != "" {
		what = " × " + m.of
	}
	return sign + number(m.bound) + what
}

func (r *result) verdict(m metric) string {
	v, ok := r.value("aileron", m.name)
	if m.bound == 0 {
		return ""
	}
	if ok && m.of != "" {
		var base float64
		base, ok = r.value(m.of, m.name)
		v /= base
	}
	switch {
	case !ok:
		return "not measured"
	case m.atLeast && v >= m.bound, !m.atLeast && v <= m.bound:
		return "met"
	}
	return "missed"
}

// number writes three digits that count.
func number(v float64) string {
	switch a := max(v, -v); {
	case a >= 100:
		return fmt.Sprintf("%.0f", v)
	case a >= 10:
		return fmt.Sprintf("%.1f", v)
	case a == 0:
		return "0"
	}
	return fmt.Sprintf("%.2f", v)
}

// report is all results of a run.
type report struct {
	began    time.Time
	options  *options
	subjects []*subject
	results  []*result
	notes    []string
}

// print writes one scenario's table for a terminal.
func (r *report) print(w io.Writer, res *result) {
	fmt.Fprintf(w, "\n%s  %s\n%-20s", res.id, res.what, "")
	for _, s := range r.subjects {
		fmt.Fprintf(w, " %14s", s.name)
	}
	fmt.Fprintln(w)
	for _, m := range res.metrics {
		fmt.Fprintf(w, "%-20s", m.name)
		for _, s := range r.subjects {
			fmt.Fprintf(w, " %14s", res.cell(s.name, m))
		}
		if m.bound != 0 {
			fmt.Fprintf(w, "  %s: %s", m.goal(), res.verdict(m))
		}
		fmt.Fprintln(w)
	}
	for _, s := range r.subjects {
		if why := res.left[s.name]; why != "" {
			fmt.Fprintf(w, "  %s: %s\n", s.name, why)
		}
	}
}

// summary counts the verdicts and names the goals that were missed.
func (r *report) summary() string {
	var met int
	var missed []string
	for _, res := range r.results {
		for _, m := range res.metrics {
			switch res.verdict(m) {
			case "met":
				met++
			case "missed", "not measured":
				missed = append(missed, res.id+" "+m.name+" "+res.cell("aileron", m)+", goal "+m.goal())
			}
		}
	}
	text := fmt.Sprintf("%d goals met, %d missed; %v", met, len(missed), time.Since(r.began).Round(time.Second))
	for _, m := range missed {
		text += "\n  missed: " + m
	}
	return text
}

// markdown is the run as a document's table.
func (r *report) markdown() string {
	cpu, kernel := machine()
	var b strings.Builder
	fmt.Fprintf(&b, "Measured %s UTC at commit %s: %s, %d cores, %s, %s; medians of %d turns of %v, interleaved; %v in "+
		"all.\n\n",
		r.began.UTC().Format("2006-01-02 15:04"), commit(), cpu, runtime.NumCPU(), kernel, runtime.Version(), r.options.turns,
		r.options.window, time.Since(r.began).Round(time.Second))
	b.WriteString("| scenario | figure |")
	for _, s := range r.subjects {
		fmt.Fprintf(&b, " %s |", s.name)
	}
	b.WriteString(" goal | verdict |\n|---|---|" + strings.Repeat("--:|", len(r.subjects)) + "---|---|\n")
	for _, res := range r.results {
		for i, m := range res.metrics {
			head := ""
			if i == 0 {
				head = "**" + res.id + "** " + res.what
			}
			fmt.Fprintf(&b, "| %s | %s |", head, m.name)
			for _, s := range r.subjects {
				fmt.Fprintf(&b, " %s |", res.cell(s.name, m))
			}
			fmt.Fprintf(&b, " %s | %s |\n", m.goal(), res.verdict(m))
		}
		for _, s := range r.subjects {
			if why := res.left[s.name]; why != "" {
				r.notes = append(r.notes, fmt.Sprintf("%s %s: %s.", res.id, s.name, why))
			}
		}
	}
	for _, n := range r.notes {
		b.WriteString("\n" + n + "\n")
	}
	return b.String()
}

// markerBegin and markerEnd stand around the table in a document of ours.
const (
	markerBegin = "<!-- bench: just bench --markdown docs/performance.md -->\n"
	markerEnd   = "<!-- bench end -->\n"
)

// write writes the table to a file, into its place where the file has one.
func (r *report) write(path string) error {
	text := r.markdown()
	if old, err := os.ReadFile(path); err == nil {
		before, rest, ok := strings.Cut(string(old), markerBegin)
		_, after, closed := strings.Cut(rest, markerEnd)
		if ok && closed {
			text = before + markerBegin + text + markerEnd + after
		}
	}
	return os.WriteFile(path, []byte(text), 0o644)
}

// commit names the tree that was measured, where git knows it.
func commit() string {
	cmd := exec.Command("git", "describe", "--always", "--dirty")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(out))
}
