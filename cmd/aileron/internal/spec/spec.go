// Package spec has the commands of aileron spec.
package spec

import (
	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
)

func New(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "spec",
		Short: "Check connector specs, and what they decide about a request",
		Args:  cobra.ArbitraryArgs,
		RunE:  cli.SubcommandNeeded,
	}
	cmd.AddCommand(newSpecValidateCommand(a), newSpecMatchCommand(a), newSpecTestCommand(a))
	return cmd
}
