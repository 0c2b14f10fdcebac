package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
)

// event is one line of go test -json; go doc test2json describes it.
type event struct {
	Action, Package, Test, Output string
	Elapsed                       float64 // seconds, of what is over
}

// results is what one package's tests have printed so far.
type results struct {
	output []string // of the package itself: what belongs to no test
	tests  []*result
	byName map[string]*result
}

// result is one test. verdict is pass, fail or skip, and empty while it runs:
// so it stays when the process dies.
type result struct {
	name, verdict string
	seconds       float64 // from its first line to its end
	output        []string
}

// test returns the named test of a package, in the order in which they began.
func (r *results) test(name string) *result {
	t := r.byName[name]
	if t == nil {
		t = &result{name: name}
		r.byName[name] = t
		r.tests = append(r.tests, t)
	}
	return t
}

// skip is what skipped tests have in common: the package, or a whole suite, and the reason.
type skip struct{ where, why string }

// named is how many tests that share a package and a reason are listed by name.
const named = 3

// printer prints a package when it has ended, and at the end what was skipped.
type printer struct {
	w        io.Writer
	err      error
	retry    bool // hold back failures that may be flaky
	packages map[string]*results
	skipped  map[skip][]string // the tests that have it in common
	passed   []string
	failed   []string
	flaky    []string
	held     []failure
	cpu      float64 // seconds
	slow     []slow  // where cpu is measured
}

func newPrinter(w io.Writer) *printer {
	return &printer{w: w, packages: map[string]*results{}, skipped: map[skip][]string{}}
}

// add takes over what another printer has collected for the report.
func (p *printer) add(other *printer) {
	p.err = cmp.Or(p.err, other.err)
	p.failed = append(p.failed, other.failed...)
	p.cpu += other.cpu
	p.slow = append(p.slow, other.slow...)
	for s, tests := range other.skipped {
		p.skip(s.where, s.why, tests...)
	}
}

func (p *printer) print(text string) {
	if p.err == nil {
		_, p.err = io.WriteString(p.w, text)
	}
}

// line takes one line of go test's output. What is no event is printed as it is.
func (p *printer) line(line []byte) {
	var e event
	if json.Unmarshal(line, &e) != nil || e.Action == "" {
		p.print(string(line))
		return
	}
	if e.Package == "" { // build-output, build-fail
		p.print(e.Output)
		return
	}
	r := p.packages[e.Package]
	if r == nil {
		r = &results{byName: map[string]*result{}}
		p.packages[e.Package] = r
	}
	over := e.Action == "pass" || e.Action == "skip" || e.Action == "fail"
	switch {
	case e.Test != "":
		r.test(e.Test).take(e, over)
	case e.Action == "output":
		r.output = append(r.output, e.Output)
	case over:
		p.ended(e.Package, r, e.Action == "fail")
		delete(p.packages, e.Package)
	}
}

// take records an event of the test, which is over with some of them.
func (t *result) take(e event, over bool) {
	if over {
		t.verdict, t.seconds = e.Action, e.Elapsed
	}
	if e.Output != "" {
		t.output = append(t.output, e.Output)
	}
}

// ended prints a package: all that explains a failure, then its own line.
func (p *printer) ended(name string, r *results, failed bool) {
	seconds := p.takeCPU(r)
	for _, t := range r.tests {
		if seconds > 0 && t.seconds >= 1 && !strings.Contains(t.name, "/") {
			p.slow = append(p.slow, slow{short(name) + " " + t.name, t.seconds})
		}
		switch t.verdict {
		case "skip":
			p.skip(short(name), reason(t.output), t.name)
		case "pass":
			p.passed = append(p.passed, short(name)+" "+t.name)
		}
	}
	if failed {
		text, names := explanation(name, r)
		if f, ok := again(name, r, text); ok && p.retry {
			p.held = append(p.held, f)
			p.print(fmt.Sprintf("again   \t%s: failed, and is run again at the end: %s\n", name, strings.Join(f.tests, ", ")))
			return
		}
		p.failed = append(p.failed, names...)
		p.print(text)
		return
	}
	for _, line := range r.output {
		if suite, why, found := strings.Cut(strings.TrimSpace(line), ": not run: "); found { // harness.NotRun
			p.skip(suite, why)
		}
		if strings.HasPrefix(line, "ok  \t") && seconds > 0 {
			line = fmt.Sprintf("%s\tCPU %.1fs\n", strings.TrimRight(line, "\n"), seconds)
		}
		if strings.HasPrefix(line, "ok  \t") || strings.Contains(line, "[no test files]") {
			p.print(line)
		}
	}
}

// explanation returns all that explains why a package failed, and the names of
// its tests that did.
func explanation(name string, r *results) (text string, names []string) {
	var b strings.Builder
	for _, t := range r.tests {
		red := t.verdict == "fail" || t.verdict == ""
		if red {
			names = append(names, short(name)+" "+t.name)
		}
		if red || unframed(t.output) {
			b.WriteString(strings.Join(slices.DeleteFunc(t.output, progress), ""))
		}
	}
	if len(names) == 0 {
		names = []string{short(name)}
	}
	b.WriteString(strings.Join(r.output, ""))
	return b.String(), names
}

// unended prints the packages whose end go test did not report: it was killed.
func (p *printer) unended() {
	for name, r := range p.packages {
		p.ended(name, r, true)
	}
	clear(p.packages)
}

// report prints what must not be overlooked, after the packages.
func (p *printer) report() error {
	count, lines := p.skips()
	p.list("skipped", count, slices.Sorted(slices.Values(lines)))
	p.list("flaky", len(p.flaky), slices.Sorted(slices.Values(p.flaky)))
	p.list("failed", len(p.failed), slices.Sorted(slices.Values(p.failed)))
	if p.cpu > 0 {
		p.print(fmt.Sprintf("processor time of the tests: %.0f s\n", p.cpu))
		p.list("slowest", len(p.slow), slowest(p.slow))
	}
	return p.err
}

// skip records tests that were skipped for the same reason, or a suite that did not run at all.
func (p *printer) skip(where, why string, tests ...string) {
	p.skipped[skip{where, why}] = append(p.skipped[skip{where, why}], tests...)
}

// skips returns how many tests and suites were skipped, and a line for each, or for many that share a reason.
func (p *printer) skips() (count int, lines []string) {
	for s, tests := range p.skipped {
		count += max(1, len(tests))
		switch {
		case len(tests) == 0:
			lines = append(lines, s.where+": "+s.why)
		case len(tests) > named:
			lines = append(lines, fmt.Sprintf("%s: %d tests: %s", s.where, len(tests), s.why))
		default:
			for _, test := range tests {
				lines = append(lines, fmt.Sprintf("%s %s: %s", s.where, test, s.why))
			}
		}
	}
	return count, lines
}

func (p *printer) list(what string, count int, lines []string) {
	if count == 0 {
		return
	}
	p.print(fmt.Sprintf("%s: %d\n\t%s\n", what, count, strings.Join(lines, "\n\t")))
}

var frame = regexp.MustCompile(`^\s*(=== (RUN|PAUSE|CONT|NAME) |--- (PASS|FAIL|SKIP): )`)

// progress reports whether a line only shows that a test runs.
func progress(line string) bool {
	return strings.HasPrefix(strings.TrimLeft(line, " "), "=== ") && frame.MatchString(line)
}

// unframed reports whether output is not all of the testing package: what a
// process or the race detector prints belongs to the test that happens to run.
func unframed(output []string) bool {
	return slices.ContainsFunc(output, func(line string) bool {
		return strings.TrimSpace(line) != "" && line[0] != ' ' && line[0] != '\t' && !frame.MatchString(line)
	})
}

var position = regexp.MustCompile(`^\s+\w+\.go:\d+: `)

// reason returns what a skipped test gave as its reason, on one line.
func reason(output []string) string {
	var words []string
	for _, line := range output {
		if frame.MatchString(line) {
			continue
		}
		if at := position.FindString(line); at != "" {
			words, line = nil, line[len(at):] // the last message is the reason
		}
		words = append(words, strings.Fields(line)...)
	}
	if len(words) == 0 {
		return "no reason"
	}
	return strings.Join(words, " ")
}

// short returns a package's path inside its module.
func short(name string) string {
	return strings.TrimPrefix(strings.TrimPrefix(name, "github.com/ALRubinger/aileron"), "/")
}
