// Package binding has the commands of aileron binding: a file a verb.
package binding

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/vault"
)

func New(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "binding",
		Short: "Bind credentials to connectors",
		Args:  cobra.ArbitraryArgs,
		RunE:  cli.SubcommandNeeded,
	}
	cmd.AddCommand(newBindingSetupCommand(a), newBindingListCommand(a), newBindingInspectCommand(a),
		newBindingRebindCommand(a), newBindingRevokeCommand(a))
	return cmd
}

// bindingError adds a hint to the error of a name for which there is no binding.
func bindingError(err error) error {
	switch {
	case errors.Is(err, vault.ErrNotInitialised):
		return hint.New(err, "create it and bind a credential with: aileron binding setup CONNECTOR")
	case errors.Is(err, vault.ErrNotBound), errors.Is(err, vault.ErrBadName):
		return hint.New(err, "see what is bound with: aileron binding list")
	}
	return err
}
