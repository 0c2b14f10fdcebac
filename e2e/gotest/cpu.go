package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// measured is the first argument of this program where go test runs it instead of a test program (go help test, -exec).
const measured = "-measured"

// cpuMark begins the line that it prints after the test program.
const cpuMark = "gotest: seconds of processor time: "

// measure runs a test program and prints the processor time that it and what it waited for have used: containers, whose
// engine is their parent, are not in it.
func measure(args []string) int {
	runtime.LockOSThread() // which Pdeathsig is about
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT)
	if err := cmd.Start(); err != nil {
		fmt.Fprintln(os.Stderr, "gotest:", err)
		return 1
	}
	go func() {
		for s := range signals {
			_ = cmd.Process.Signal(s)
		}
	}()
	err := cmd.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		fmt.Fprintln(os.Stderr, "gotest:", err)
	}
	fmt.Printf("%s%.1f\n", cpuMark, (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds())
	if code := cmd.ProcessState.ExitCode(); code >= 0 {
		return code
	}
	return 1 // by a signal
}

// slow is a test that took some seconds, with all that it waited for: others of its package are among that where it is
// parallel.
type slow struct {
	test    string
	seconds float64
}

// longest is how many tests are listed as the slowest.
const longest = 40

// slowest returns a line for each of the slowest tests.
func slowest(tests []slow) []string {
	slices.SortStableFunc(tests, func(a, b slow) int { return cmp.Compare(b.seconds, a.seconds) })
	var lines []string
	for _, t := range tests[:min(len(tests), longest)] {
		lines = append(lines, fmt.Sprintf("%6.1fs %s", t.seconds, t.test))
	}
	return lines
}

// takeCPU takes the line of measure out of a package's output, and adds it up.
func (p *printer) takeCPU(r *results) (seconds float64) {
	kept := r.output[:0]
	for _, line := range r.output {
		before, text, found := strings.Cut(line, cpuMark)
		if found {
			seconds, _ = strconv.ParseFloat(strings.TrimSpace(text), 64)
			p.cpu += seconds
			line = before
		}
		if line != "" {
			kept = append(kept, line)
		}
	}
	r.output = kept
	return seconds
}
