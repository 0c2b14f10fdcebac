package main

import (
	"github.com/spf13/cobra"
)

func newSandboxCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "sandbox",
		Short: "Run commands in sealed boxes",
		Args:  cobra.ArbitraryArgs,
		RunE:  subcommandNeeded,
	}
	cmd.AddCommand(newSandboxRunCommand(a), newSandboxBuildCommand(a), newSandboxCheckCommand(a), newSandboxPruneCommand(a), newSandboxWardenCommand(a), newRunWardenCommand(a))
	return cmd
}
