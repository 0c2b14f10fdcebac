package main

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// mostAgain is how many failed tests are run a second time. More of them have a
// common cause.
const mostAgain = 5

// failure is a package some of whose tests have failed, all of which may be run
// again.
type failure struct {
	pkg   string
	tests []string // without subtests
	names []string // of each test and subtest that failed, for the report
	text  string   // all that explains it
}

// neverAgain is the output of failures that a second run would hide: it is no
// test's assertion that has failed, but the program.
var neverAgain = regexp.MustCompile(`(?m)^(WARNING: DATA RACE|panic: |fatal error: |SIG[A-Z]+: )`)

// again returns a failure whose tests may be run a second time: each has ended
// by itself, and the program has neither raced nor died.
func again(name string, r *results, text string) (failure, bool) {
	f := failure{pkg: name, text: text}
	for _, t := range r.tests {
		switch t.verdict {
		case "":
			return failure{}, false // the process ended before the test
		case "fail":
			f.names = append(f.names, short(name)+" "+t.name)
			top, _, _ := strings.Cut(t.name, "/")
			if !slices.Contains(f.tests, top) {
				f.tests = append(f.tests, top)
			}
		}
	}
	return f, len(f.tests) > 0 && !neverAgain.MatchString(text)
}

// runAgain runs the tests of a failure alone, with the flags of the run in which
// they failed. It returns whether each has passed, and what explains it if not.
func runAgain(ctx context.Context, args []string, f failure) (passed bool, text string, err error) {
	args = slices.DeleteFunc(slices.Clone(args), func(arg string) bool {
		return arg == "." || strings.HasPrefix(arg, "./")
	})
	args = append(args, "-run", "^("+strings.Join(f.tests, "|")+")$", f.pkg) // the last -run counts
	var out strings.Builder
	p := newPrinter(&out)
	code, err := goTest(ctx, args, p.line)
	p.unended()
	for _, test := range f.tests {
		if !slices.Contains(p.passed, short(f.pkg)+" "+test) {
			return false, out.String(), err
		}
	}
	return code == 0 && err == nil, out.String(), err
}

// secondTries runs again, one after the other, what has failed in suites beside
// others. What passes then is flaky; what fails again, or is not run again
// because there is too much of it, has failed.
func secondTries(ctx context.Context, suites []*suite, total *printer) error {
	count := 0
	for _, s := range suites {
		for _, f := range s.printer.held {
			count += len(f.tests)
		}
	}
	for _, s := range suites {
		for _, f := range s.printer.held {
			var passed bool
			var text string
			if count <= mostAgain && ctx.Err() == nil {
				var err error
				if passed, text, err = runAgain(ctx, s.args, f); err != nil {
					return err
				}
			}
			if passed {
				total.flaky = append(total.flaky, f.names...)
				total.print(fmt.Sprintf("flaky   \t%s: what failed beside the others has passed alone\n%s",
					f.pkg, quoted(f.text)))
				continue
			}
			s.failed = true
			total.failed = append(total.failed, f.names...)
			total.print(f.text)
			total.print(text)
		}
	}
	return nil
}

// quoted marks each line as one of a run that does not count.
func quoted(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString("\t| " + line)
	}
	return b.String()
}
