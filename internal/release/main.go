// Command release writes what a release states about the modules that a program was built from:
//
//	go run ./internal/release notices PROGRAM    their licences, whole, as the licences demand
//	go run ./internal/release sbom PROGRAM       a CycloneDX list of them
//
// Both are read from the program itself, and from the module cache. They are the same for the same program, whenever
// and wherever they are written. A module whose licence is not known fails, so that a release cannot leave it out.
// scripts/release calls it.
package main

import (
	"bufio"
	"context"
	"debug/buildinfo"
	"fmt"
	"io"
	"os"
	"os/signal"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// run writes what args ask for to w.
func run(ctx context.Context, args []string, w io.Writer) error {
	if len(args) != 2 {
		return fmt.Errorf("usage: release notices|sbom PROGRAM")
	}
	info, err := buildinfo.ReadFile(args[1])
	if err != nil {
		return err
	}
	modules, err := licensed(ctx, info)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(w)
	switch args[0] {
	case "notices":
		err = writeNotices(out, modules)
	case "sbom":
		err = writeSBOM(out, info, modules)
	default:
		return fmt.Errorf("%q is neither notices nor sbom", args[0])
	}
	if err != nil {
		return err
	}
	return out.Flush()
}
