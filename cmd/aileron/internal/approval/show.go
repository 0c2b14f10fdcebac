package approval

import (
	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
	"github.com/ALRubinger/aileron/internal/approvals"
	"github.com/ALRubinger/aileron/internal/session"
)

func newShowCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "show ID",
		Short: "Show a request that waits, with its parameters and its body",
		Long: "Show a request that waits. Lines that begin with \"  | \" or \"  |+\" have what the agent\n" +
			"wrote, escaped; all others are aileron's.",
		Example: "  aileron approval show 01J…",
		Args:    cli.UsageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			home, err := a.Home()
			if err != nil {
				return err
			}
			q, err := session.FindApproval(cmd.Context(), home, args[0], false)
			if err != nil {
				return err
			}
			if a.JSON {
				return a.PrintJSON(q)
			}
			return approvals.Show(a.Stdout, q, a.OutputColumns())
		},
	}
}
