// Package action has the commands of aileron action: a file a verb.
package action

import (
	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
)

func New(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "action",
		Short: "Add, inspect and run actions: named calls of operations, with pinned connectors",
		Args:  cobra.ArbitraryArgs,
		RunE:  cli.SubcommandNeeded,
	}
	cmd.AddCommand(newActionAddCommand(a), newActionListCommand(a), newActionShowCommand(a), newActionRunCommand(a),
		newActionRemoveCommand(a))
	return cmd
}
