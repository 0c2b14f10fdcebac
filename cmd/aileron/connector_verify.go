package main

import (
	"errors"
	"fmt"

	"github.com/ALRubinger/aileron/spec/store"
	"github.com/spf13/cobra"
)

func newConnectorVerifyCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "verify [NAME[@VERSION]]",
		Short:   "Check the installed connectors against their hashes",
		Example: "  aileron connector verify",
		Args:    usageArgs(cobra.MaximumNArgs(1)),
		RunE: func(_ *cobra.Command, args []string) error {
			_, entries, err := a.installed()
			if err != nil {
				return err
			}
			if len(args) == 1 {
				if entries, err = a.chosenEntries(entries, args[0]); err != nil {
					return err
				}
			}
			if err := a.printEntries(entries); err != nil {
				return err
			}
			var broken []error
			for _, e := range entries {
				broken = append(broken, e.Err)
			}
			if err := errors.Join(broken...); err != nil {
				return store.Hint(fmt.Errorf("verify the connectors: %w", err))
			}
			return nil
		},
	}
}
