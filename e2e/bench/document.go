package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// Markers stand around the text that the bench writes into a document.
const (
	markerBegin = "<!-- bench: just bench --docs -->\n"
	markerEnd   = "<!-- bench end -->\n"
)

// save writes the run to the files of the options.
func (r *report) save() error {
	var errs []error
	if r.options.markdown != "" {
		errs = append(errs, r.write(r.options.markdown))
	}
	if r.options.plot != "" {
		errs = append(errs, r.plot(r.options.plot))
	}
	if r.options.docs {
		errs = append(errs, r.publish("."))
	}
	return errors.Join(errs...)
}

// publish writes the run into the documents of the repository at root.
func (r *report) publish(root string) error {
	for _, doc := range []struct{ path, text string }{
		{"docs/performance.md", "![Every goal, worst first, and where each proxy is](performance.svg)\n\n" + r.markdown()},
		{"README.md", r.readme()},
	} {
		if err := replaceMarked(filepath.Join(root, doc.path), doc.text); err != nil {
			return err
		}
	}
	return r.plot(filepath.Join(root, "docs/performance.svg"))
}

// write writes the tables to a file, into their place where the file has one.
func (r *report) write(path string) error {
	text := r.markdown()
	if old, err := os.ReadFile(path); err == nil && strings.Contains(string(old), markerBegin) {
		return replaceMarked(path, text)
	}
	return os.WriteFile(path, []byte(text), 0o644)
}

// replaceMarked puts the text between the markers of a document.
func replaceMarked(path, text string) error {
	old, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	before, rest, opened := strings.Cut(string(old), markerBegin)
	_, after, closed := strings.Cut(rest, markerEnd)
	if !opened || !closed {
		return fmt.Errorf("%s lacks the lines %q and %q", path, strings.TrimSpace(markerBegin), strings.TrimSpace(markerEnd))
	}
	return os.WriteFile(path, []byte(before+markerBegin+text+markerEnd+after), 0o644)
}

// provenance returns when, where and how the run measured, as a paragraph.
func (r *report) provenance() string {
	cpu, kernel := machine()
	return wrapped(fmt.Sprintf("Measured %s UTC at commit %s: %s, %d cores, %s, %s; load average %s before the run; "+
		"medians of up to %d turns of %v, interleaved; %v in all.", r.began.UTC().Format("2006-01-02 15:04"), commit(), cpu,
		runtime.NumCPU(), kernel, runtime.Version(), r.load, r.options.turns, r.options.window,
		time.Since(r.began).Round(time.Second)))
}

// wrapped returns a paragraph in lines of 118 columns.
func wrapped(paragraph string) string {
	text, column := "", 0
	for _, word := range strings.Fields(paragraph) {
		n := utf8.RuneCountInString(word)
		switch {
		case text == "":
		case column+1+n > 118:
			text, column = text+"\n", 0
		default:
			text, column = text+" ", column+1
		}
		text, column = text+word, column+n
	}
	return text + "\n"
}

// markdown returns the run as a document: every goal, and then every figure, both worst first.
func (r *report) markdown() string {
	var b strings.Builder
	b.WriteString(r.provenance())
	r.goalTable(&b)
	r.figureTable(&b)
	for _, n := range r.remarks() {
		b.WriteString("\n" + wrapped(n))
	}
	return b.String()
}

func (r *report) goalTable(b *strings.Builder) {
	b.WriteString("\n| worst first | figure | aileron | goal | × goal | |\n|---|---|--:|---|--:|---|\n")
	for _, j := range r.ranking() {
		fmt.Fprintf(b, "| **%s** %s | %s | %s | %s | %s | %s |\n", j.id, j.what, j.name, j.cell("aileron", j.metric),
			j.goal(), j.times(), j.verdict(j.metric))
	}
}

func (r *report) figureTable(b *strings.Builder) {
	b.WriteString("\n| scenario | figure |")
	for _, s := range r.subjects {
		fmt.Fprintf(b, " %s |", s.name)
	}
	b.WriteString("\n|---|---|" + strings.Repeat("--:|", len(r.subjects)) + "\n")
	for _, res := range r.worstFirst() {
		for i, m := range res.metrics {
			head := ""
			if i == 0 {
				head = "**" + res.id + "** " + res.what
			}
			fmt.Fprintf(b, "| %s | %s |", head, m.name)
			for _, s := range r.subjects {
				fmt.Fprintf(b, " %s |", res.cell(s.name, m))
			}
			b.WriteString("\n")
		}
	}
}

// remarks returns what the tables leave out, and why.
func (r *report) remarks() []string {
	all := r.notes
	for _, res := range r.results {
		for _, s := range r.subjects {
			if why := res.left[s.name]; why != "" {
				all = append(all, fmt.Sprintf("%s %s: %s.", res.id, s.name, strings.TrimSpace(why)))
			}
		}
	}
	return all
}

// readme returns a table with a row for each scenario: of its goals, the one that is missed by most.
func (r *report) readme() string {
	var b strings.Builder
	peers := r.peers()
	cpu, _ := machine()
	fmt.Fprintf(&b, "`just bench`, %s, %d cores (%s); %s\n\n| worst first | | aileron |",
		r.began.UTC().Format(time.DateOnly),
		runtime.NumCPU(), cpu, r.count())
	for _, p := range peers {
		fmt.Fprintf(&b, " %s |", p)
	}
	b.WriteString(" goal |\n|---|---|--:|" + strings.Repeat("--:|", len(peers)) + "--:|\n")
	seen := map[string]bool{}
	for _, j := range r.ranking() {
		if seen[j.id] {
			continue
		}
		seen[j.id] = true
		fmt.Fprintf(&b, "| %s | %s |", j.what, j.unit())
		for _, name := range append([]string{"aileron"}, peers...) {
			text := ""
			if v, ok := j.judged(name, j.metric); ok {
				text = number(v)
			}
			if name == "aileron" && j.verdict(j.metric) == "met" {
				text = "**" + text + "**"
			}
			fmt.Fprintf(&b, " %s |", text)
		}
		fmt.Fprintf(&b, " %s |\n", number(j.bound))
	}
	return b.String()
}

// peers returns the proxies that are measured beside aileron and are no part of the bench.
func (r *report) peers() []string {
	var all []string
	for _, s := range r.subjects {
		if slices.Contains(strangers, s.name) {
			all = append(all, s.name)
		}
	}
	return all
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
