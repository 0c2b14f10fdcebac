package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/vault"
)

func newBindingCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "binding",
		Short: "Bind credentials to connectors",
		Args:  cobra.ArbitraryArgs,
		RunE:  subcommandNeeded,
	}
	cmd.AddCommand(newBindingSetupCommand(a), newBindingListCommand(a), newBindingInspectCommand(a), newBindingRebindCommand(a), newBindingRevokeCommand(a))
	return cmd
}

// bindingError adds the mend that there is for a name that leads nowhere.
func bindingError(err error) error {
	switch {
	case errors.Is(err, vault.ErrNotInitialised):
		return hint.New(err, "aileron binding setup FQN makes it and binds a credential")
	case errors.Is(err, vault.ErrNotBound), errors.Is(err, vault.ErrBadName):
		return hint.New(err, "aileron binding list shows what is bound")
	}
	return err
}
