// Command costs measures what does not depend on how busy a machine is: allocations, bytes and instructions of the
// benchmarks in [benchmarks]. It compares them with testdata/baseline.json and fails where one has grown by more than
// a tenth, or a quarter where a clock starts some of the work.
//
//	go run ./e2e/costs                     # compare
//	go run ./e2e/costs --baseline          # an intended growth: write the baseline anew, and commit it with the reason
//	go run ./e2e/costs --only allocations  # or instructions
//
// Instructions are counted by valgrind, or by perf where the machine has counters. Where neither works they are not
// compared, and the report states the reason.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := command(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "costs:", err)
		os.Exit(1)
	}
}

func command(ctx context.Context, args []string, out io.Writer) error {
	f := flag.NewFlagSet("costs", flag.ContinueOnError)
	renew := f.Bool("baseline", false, "write the baseline anew instead of comparing with it")
	only := f.String("only", "", "what to compare: allocations or instructions (default both)")
	path := f.String("file", "e2e/costs/testdata/baseline.json", "the baseline")
	if err := f.Parse(args); err != nil {
		return err
	}
	if f.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", f.Arg(0))
	}
	m := meter{allocations: *only != "instructions"}
	if *only != "allocations" {
		var err error
		if m.counter, err = findCounter(ctx); err != nil {
			fmt.Fprintf(out, "costs: instructions are not compared: %v\n", err)
		}
	}
	old, err := readBaseline(*path)
	if *renew {
		now, err := m.measure(ctx, func(_ string, _ figures, attempt int) bool { return attempt == 3 })
		if err != nil {
			return err
		}
		return writeBaseline(*path, old, now)
	}
	if err != nil {
		return err
	}
	now, err := m.measure(ctx, func(name string, f figures, _ int) bool {
		return compare(old, map[string]figures{name: f}).err() == nil
	})
	if err != nil {
		return err
	}
	c := compare(old, now)
	c.print(out)
	return c.err()
}
