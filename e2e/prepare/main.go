// Command prepare makes what the suites share before they start, so that none
// of it happens inside a test's time-out:
//
//	go run ./e2e/prepare programs DIR   aileron, built once for all suites
//
// scripts/test runs it; a suite that is run alone makes what it needs itself.
package main

import (
	"fmt"
	"os"

	"github.com/ALRubinger/aileron/e2e/harness"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "prepare:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) == 2 && args[0] == "programs" {
		return harness.BuildForAll(args[1])
	}
	return fmt.Errorf("usage: prepare programs DIR")
}
