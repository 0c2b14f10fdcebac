// Command prepare makes what the suites share before they start, so that none
// of it happens inside a test's time-out:
//
//	go run ./e2e/prepare programs DIR      aileron, built once for all suites
//	go run ./e2e/prepare images [SUITE...] the images that suites run, such as those of e2e/matrix; or all
//	go run ./e2e/prepare prune             removes images whose recipes have changed
//
// scripts/test runs it. A suite that is run alone makes what it needs itself.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/ALRubinger/aileron/e2e/harness"
	"github.com/ALRubinger/aileron/e2e/recipes"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "prepare:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	switch {
	case len(args) == 2 && args[0] == "programs":
		return harness.BuildForAll(args[1])
	case len(args) >= 1 && args[0] == "images":
		return withStore(func(s *recipes.Store) error { return s.EnsureFor(ctx, args[1:]...) })
	case len(args) == 1 && args[0] == "prune":
		return withStore(func(s *recipes.Store) error { return s.Prune(ctx) })
	}
	return errors.New("usage: prepare programs DIR | images [SUITE...] | prune")
}

func withStore(do func(*recipes.Store) error) error {
	s, err := recipes.Open(os.Stderr)
	if err != nil {
		return err
	}
	return errors.Join(do(s), s.Close())
}
