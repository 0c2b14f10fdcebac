// Package approval has the commands of aileron approval: a file a verb.
package approval

import (
	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
)

func New(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "approval",
		Short: "Decide about requests of agents that wait for you",
		Long: "Decide about requests of agents that wait for you: those of operations with\n" +
			"\"approval\": \"required\". Nothing is sent until you approve, and silence approves nothing.",
		Args: cobra.ArbitraryArgs,
		RunE: cli.SubcommandNeeded,
	}
	cmd.AddCommand(newListCommand(a), newShowCommand(a), newApproveCommand(a), newDenyCommand(a), newRevokeCommand(a))
	return cmd
}
