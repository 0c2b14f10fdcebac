package main

import (
	"github.com/spf13/cobra"
)

func newSandboxCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "sandbox",
		Short: "Run commands in sealed sandboxes",
		Args:  cobra.ArbitraryArgs,
		RunE:  subcommandNeeded,
	}
	cmd.AddCommand(newSandboxRunCommand(a), newSandboxBuildCommand(a), newSandboxCheckCommand(a),
		newSandboxPruneCommand(a),
		newSandboxReaperCommand(a), newHostReaperCommand(a))
	return cmd
}
