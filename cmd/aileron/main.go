// Command aileron runs AI agents in sealed sandboxes whose only way out is an HTTPS proxy that injects credentials,
// redacts them from responses, and records every request.
//
//	aileron launch --sandbox=podman opencode
//	aileron audit tail -f
//
// This package makes the tree of commands (root.go), completes words (completion.go), and writes the manual (man.go).
// Each noun is a package of internal, with a file a verb: flags, words and exit codes. internal/cli is what all of
// them share. What several commands do is in packages below the module's internal: connectors, bindings, project,
// setup, actions, changes, unlock, doctor, report. What a session is, is in internal/session; how a command runs behind
// one, in internal/launch.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
	"github.com/ALRubinger/aileron/internal/console"
	"github.com/ALRubinger/aileron/internal/home"
	"github.com/ALRubinger/aileron/internal/protect"
	"github.com/ALRubinger/aileron/sandbox"
	"github.com/ALRubinger/aileron/spec/signature"
	"github.com/ALRubinger/aileron/vault"
)

func main() {
	sandbox.RunStage()
	protected, err := protect.ProtectProcess()
	if err != nil {
		fmt.Fprintln(os.Stderr, "aileron:", err)
		os.Exit(1)
	}
	// net/http's transport prints the bytes of a response to no request, and those may echo a credential. aileron's own
	// messages do not use package log.
	log.SetOutput(io.Discard)
	cobra.EnableCommandSorting = false // help begins with the main job
	os.Exit(Main(context.Background(), os.Args[1:], osApp(protected)))
}

func osApp(p *protect.Protection) *cli.App {
	a := cli.New(&console.Console{Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr}, &home.Dir{Environ: p.Getenv})
	a.Protected = p
	if factor, err := strconv.Atoi(testOnlyWorkFactor); err == nil {
		a.VaultOptions = append(a.VaultOptions, vault.TestOnlyWorkFactor(factor))
		signature.TestOnlyLittleWork()
	}
	return a
}

// Main runs the command line and returns the exit code of CONTRACT section 1.
func Main(ctx context.Context, args []string, a *cli.App) int {
	a.Build, a.Root = thisBuild(), newRootCommand
	return a.Run(ctx, args)
}
