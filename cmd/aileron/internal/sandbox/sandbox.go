// Package sandbox has the commands of aileron sandbox, and the hidden ones that run beside a sandbox.
package sandbox

import (
	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
	"github.com/ALRubinger/aileron/cmd/aileron/internal/launch"
)

func New(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "sandbox",
		Short: "Run commands in sealed sandboxes",
		Args:  cobra.ArbitraryArgs,
		RunE:  cli.SubcommandNeeded,
	}
	cmd.AddCommand(launch.NewSandboxRunCommand(a), newSandboxInitCommand(a), newSandboxPlanCommand(a),
		newSandboxBuildCommand(a), newSandboxCheckCommand(a), newSandboxPruneCommand(a), newSandboxReaperCommand(a),
		newHostReaperCommand(a), newApparmorCommand(a))
	return cmd
}
