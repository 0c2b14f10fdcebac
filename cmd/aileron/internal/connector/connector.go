// Package connector has the commands of aileron connector: a file a verb.
package connector

import (
	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
)

func New(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "connector",
		Short: "Install and inspect connectors, which define what a session may do",
		Args:  cobra.ArbitraryArgs,
		RunE:  cli.SubcommandNeeded,
	}
	cmd.AddCommand(newConnectorInstallCommand(a), newConnectorListCommand(a), newConnectorShowCommand(a),
		newConnectorVerifyCommand(a), newConnectorRemoveCommand(a), newConnectorCheckCommand(a), newConnectorPackCommand(a),
		newConnectorNewCommand(a), newConnectorTestCommand(a),
		newConnectorSchemaCommand(a), newConnectorKeygenCommand(a), newConnectorKeysCommand(a),
		newConnectorBumpCommand(a), newConnectorReleaseCommand(a), newConnectorVouchCommand(a),
		newConnectorOutdatedCommand(a))
	return cmd
}
