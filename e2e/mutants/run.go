package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/ALRubinger/aileron/e2e/harness"
	"github.com/ALRubinger/aileron/e2e/must"
)

// verdict is what became of a mutant.
type verdict string

const (
	killed   verdict = "killed"   // its test failed, with a message
	survived verdict = "SURVIVED" // its test passed
	stale    verdict = "STALE"    // the edit does not apply, or does not compile
	hung     verdict = "HUNG"     // its test did not end, or failed without a message
	untried  verdict = "UNTRIED"  // there is no such test, or it was skipped
)

// bound is for one run of go test: what takes so long waits for nothing.
const bound = 4 * time.Minute

// runner runs tests in a copy of the repository.
type runner struct {
	root  string
	bound time.Duration
	nice  int
	tries int
	cpu   time.Duration

	flags  []string // of go test
	env    []string // beside that of this process
	prefix []string // of the command
}

// try makes the edit, runs the test, and takes the edit back.
func (r runner) try(ctx context.Context, m mutant) (verdict, string, error) {
	undo, err := m.apply(r.root)
	if errors.Is(err, errStale) {
		return stale, err.Error(), nil
	}
	if err != nil {
		return "", "", err
	}
	v, why := r.test(ctx, m.pkg, m.run)
	for tried := 1; tried < r.tries && (v == survived || v == hung); tried++ {
		v, why = r.test(ctx, m.pkg, m.run)
	}
	return v, why, errors.Join(ctx.Err(), undo())
}

// patience is how long a test waits for what the edit may have taken away.
const patience = time.Minute

// test runs go test and judges what it prints.
func (r runner) test(ctx context.Context, pkg, run string) (verdict, string) {
	within, cancel := context.WithTimeout(ctx, r.bound)
	defer cancel()
	timeout := fmt.Sprintf("-timeout=%v", r.bound*3/4)
	args := slices.Concat(r.prefix, []string{
		"nice", "-n", strconv.Itoa(r.nice),
		"go", "test", "-count=1", "-vet=off", "-v", timeout, "-run", run,
	}, r.flags, []string{pkg})
	cmd := exec.CommandContext(within, args[0], args[1:]...)
	cmd.Dir, cmd.Env = r.root, append(alone(os.Environ()), r.env...)
	cmd.Env = append(cmd.Env, must.PatienceEnv+"="+patience.String())
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 10 * time.Second
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	return judge(out.String(), err == nil, within.Err() != nil)
}

// alone returns the environment of a test that nothing was prepared for: what a run of all tests has built is built
// from sources without the edit, and the part of them that it makes may leave out what a mutant needs.
func alone(env []string) []string {
	return slices.DeleteFunc(env, func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return name == harness.ProgramsEnv || name == harness.TurnEnv
	})
}

// failure is the message of a test, of a story, or of a panic.
var failure = regexp.MustCompile(`(?m)^\s+\w+_test\.go:\d+: .*|^\s+FAIL: \S+\.txtar:\d+: .*|^panic: .*`)

// judge reads the output of go test -v.
func judge(out string, passed, late bool) (verdict, string) {
	message := strings.TrimSpace(failure.FindString(out))
	switch {
	case late, strings.Contains(out, "panic: test timed out"), strings.Contains(out, " has not ended after "):
		return hung, last(out)
	case strings.Contains(out, "[build failed]"), strings.Contains(out, "[setup failed]"):
		return stale, last(out)
	case !passed && message != "":
		return killed, message
	case !passed:
		return hung, "red without a message: " + last(out)
	case !strings.Contains(out, "--- PASS"):
		return untried, last(out)
	}
	return survived, ""
}

// last returns the end of what was printed, on one line.
func last(out string) string {
	lines := strings.Fields(out)
	return strings.Join(lines[max(0, len(lines)-40):], " ")
}

// baseline runs the tests of all mutants without any edit: a test that is red
// anyway kills nothing.
func (r runner) baseline(ctx context.Context, all []mutant) error {
	for _, pkg := range packages(all) {
		for _, run := range union(all, pkg) {
			fmt.Fprintf(os.Stderr, "mutants: without an edit: %s\n", pkg)
			if v, why := r.test(ctx, pkg, run); v != survived {
				return fmt.Errorf("run the tests of %s without an edit (%s): %s: %s", pkg, run, v, why)
			}
		}
	}
	return ctx.Err()
}

func packages(all []mutant) []string {
	var pkgs []string
	for _, m := range all {
		if !slices.Contains(pkgs, m.pkg) {
			pkgs = append(pkgs, m.pkg)
		}
	}
	return pkgs
}

// union returns as few expressions as hold all tests of a package: one for
// whole tests, and one for each test of which subtests are named.
func union(all []mutant, pkg string) []string {
	var whole []string
	parts := map[string][]string{}
	for _, m := range all {
		if m.pkg != pkg {
			continue
		}
		if test, part, found := strings.Cut(m.run, "/"); found {
			parts[test] = append(parts[test], "("+part+")")
		} else {
			whole = append(whole, "("+m.run+")")
		}
	}
	var runs []string
	if len(whole) > 0 {
		runs = append(runs, strings.Join(slices.Compact(slices.Sorted(slices.Values(whole))), "|"))
	}
	for test, part := range parts {
		runs = append(runs, test+"/"+strings.Join(slices.Compact(slices.Sorted(slices.Values(part))), "|"))
	}
	return slices.Sorted(slices.Values(runs))
}
