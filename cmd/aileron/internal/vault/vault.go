// Package vault has the commands of aileron vault: a file a verb.
package vault

import (
	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
)

func New(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "vault",
		Short: "Keep credentials encrypted at rest",
		Args:  cobra.ArbitraryArgs,
		RunE:  cli.SubcommandNeeded,
	}
	cmd.AddCommand(newVaultInitCommand(a), newVaultStatusCommand(a), newVaultUnlockCommand(a), newVaultLockCommand(a),
		newVaultPasswdCommand(a), newVaultKeepCommand(a))
	return cmd
}
