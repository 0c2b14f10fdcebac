// Command gotest runs go test and prints what it prints, and at the end each
// test that was skipped with its reason, which go test prints only with -v.
//
//	scripts/gotest -race -count=1 ./...
//	scripts/gotest -race ./proxy :: CGO_ENABLED=0 -p 2 ./e2e/...
//
// The arguments are those of go test; a "::" separates runs that go on side by
// side and share one report, a "," separates runs of which one begins when the
// other has ended, and assignments before the arguments of a run are its
// environment. A package that passes is its ok line; of one that fails
// everything is printed that its failed tests and its processes wrote. The exit
// code is that of the run that failed.
//
// With -again among the first arguments, up to five tests that fail are run a second
// time, alone, once all others have ended. Those that pass then are listed as
// flaky, with what they printed when they failed, and do not fail the run. A data
// race, a panic, a time-out and a package that fails without a test are never
// tried again. With -cpu, the line of a package has the processor time of its
// test program, and the report that of all.
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"slices"
	"sync"
	"syscall"
	"time"
)

func main() {
	if len(os.Args) > 2 && os.Args[1] == measured {
		os.Exit(measure(os.Args[2:]))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code, err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "gotest:", err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// suite is one run of go test.
type suite struct {
	args    []string
	printer *printer
	code    int
	failed  bool // beyond what may be flaky
}

// run runs go test with these arguments, or several at once, and returns the exit code.
func run(ctx context.Context, args []string, w io.Writer) (int, error) {
	retry, wrapper := false, []string(nil)
	for ; len(args) > 0 && (args[0] == "-again" || args[0] == "-cpu"); args = args[1:] {
		if args[0] == "-again" {
			retry = true
			continue
		}
		self, err := os.Executable()
		if err != nil {
			return 1, fmt.Errorf("find this program: %w", err)
		}
		wrapper = []string{"-exec", self + " " + measured}
	}
	var mu sync.Mutex // of w and of failed
	var failed error
	var running sync.WaitGroup
	var suites []*suite
	for chain := range split(args, "::") {
		var turns []*suite
		for group := range split(chain, ",") {
			turns = append(turns, &suite{args: withFlags(group, wrapper), printer: newPrinter(w)})
		}
		suites = append(suites, turns...)
		running.Go(func() {
			for _, s := range turns {
				s.printer.retry = retry
				code, err := goTest(ctx, s.args, func(line []byte) {
					mu.Lock()
					defer mu.Unlock()
					s.printer.line(line)
				})
				mu.Lock()
				s.code, failed = code, errors.Join(failed, err)
				mu.Unlock()
			}
		})
	}
	running.Wait()
	total := newPrinter(w)
	for _, s := range suites {
		s.printer.unended()
		s.failed = s.code > 1 || s.code == 1 && (len(s.printer.failed) > 0 || len(s.printer.held) == 0)
		total.add(s.printer)
	}
	failed = errors.Join(failed, secondTries(ctx, suites, total), total.report())
	worst := 0
	for _, s := range suites {
		if s.failed {
			worst = max(worst, s.code)
		}
	}
	return worst, failed
}

// split returns the arguments between separators.
func split(args []string, separator string) iter.Seq[[]string] {
	return func(yield func([]string) bool) {
		for {
			at := slices.Index(args, separator)
			if at < 0 {
				yield(args)
				return
			}
			if !yield(args[:at]) {
				return
			}
			args = args[at+1:]
		}
	}
}

// withFlags returns the arguments of a run with flags behind its environment.
func withFlags(args, flags []string) []string {
	return slices.Insert(slices.Clone(args), environment(args), flags...)
}

// environment returns how many assignments the arguments begin with.
func environment(args []string) int {
	n := slices.IndexFunc(args, func(arg string) bool { return !assignment.MatchString(arg) })
	if n < 0 {
		return len(args)
	}
	return n
}

var assignment = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*=`)

// goTest runs go test once, passes on each line of its events, and returns its exit code.
func goTest(ctx context.Context, args []string, line func([]byte)) (int, error) {
	first := environment(args)
	cmd := exec.CommandContext(ctx, "go", append([]string{"test", "-json"}, args[first:]...)...)
	cmd.Env = append(os.Environ(), args[:first]...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // go test ends its tests
	cmd.WaitDelay = time.Minute
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return 1, err
	}
	if err := cmd.Start(); err != nil {
		return 1, fmt.Errorf("start go test: %w", err)
	}
	readErr := eachLine(bufio.NewReader(out), line)
	err = cmd.Wait()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return max(exit.ExitCode(), 1), readErr
	}
	return 0, errors.Join(readErr, err)
}

// eachLine calls line with each line of r until its end.
func eachLine(r *bufio.Reader, line func([]byte)) error {
	for {
		text, err := r.ReadBytes('\n')
		line(text)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read what go test prints: %w", err)
		}
	}
}
