package audit

import (
	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
	"github.com/ALRubinger/aileron/internal/auditview"
)

func newAuditShowCommand(from *auditview.Source) *cobra.Command {
	return &cobra.Command{
		Use:     "show ID",
		Short:   "Tell what happened in one event; with --json, its row",
		Example: "  aileron audit show 01JABCDEF    # or more of the id",
		Args:    cli.UsageArgs(cobra.ExactArgs(1)),
		RunE:    func(cmd *cobra.Command, args []string) error { return from.Show(cmd.Context(), args[0]) },
	}
}
