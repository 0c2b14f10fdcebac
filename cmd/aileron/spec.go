package main

import (
	"github.com/spf13/cobra"
)

func newSpecCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "spec",
		Short: "Check connector specs, and what they decide about a request",
		Args:  cobra.ArbitraryArgs,
		RunE:  subcommandNeeded,
	}
	cmd.AddCommand(newSpecValidateCommand(a), newSpecMatchCommand(a))
	return cmd
}
