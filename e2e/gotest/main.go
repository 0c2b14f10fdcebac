// Command gotest runs go test and prints what it prints, and at the end each
// test that was skipped with its reason, which go test prints only with -v.
//
//	scripts/gotest -race -count=1 ./...
//
// The arguments are those of go test. A package that passes is its ok line; of
// one that fails everything is printed that its failed tests and its processes
// wrote. The exit code is that of go test.
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code, err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "gotest:", err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// run runs go test with these arguments and returns its exit code.
func run(ctx context.Context, args []string, w io.Writer) (int, error) {
	cmd := exec.CommandContext(ctx, "go", append([]string{"test", "-json"}, args...)...)
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
	readErr := report(bufio.NewReader(out), w)
	err = cmd.Wait()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return max(exit.ExitCode(), 1), readErr
	}
	return 0, errors.Join(readErr, err)
}

// report reads the events of go test -json and prints the report of them.
func report(r *bufio.Reader, w io.Writer) error {
	p := printer{w: w, packages: map[string]*results{}}
	for {
		line, err := r.ReadBytes('\n')
		p.line(line)
		if err == io.EOF {
			return p.end()
		}
		if err != nil {
			return errors.Join(fmt.Errorf("read what go test prints: %w", err), p.end())
		}
	}
}
