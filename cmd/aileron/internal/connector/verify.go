package connector

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
	"github.com/ALRubinger/aileron/internal/connectors"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/spec/store"
)

func newConnectorVerifyCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:     "verify [NAME[@VERSION]]",
		Short:   "Check the installed connectors against their hashes and signatures",
		Example: "  aileron connector verify",
		Args:    cli.UsageArgs(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, entries, err := a.Installed()
			if err != nil {
				return err
			}
			if len(args) == 1 {
				if entries, err = connectors.ChosenEntries(a.Dir, entries, args[0]); err != nil {
					return err
				}
			}
			by := connectors.CheckEntries(a.Dir, s, entries)
			if err := printEntries(a, entries, by); err != nil {
				return err
			}
			connectors.RecordRefusals(cmd.Context(), a.Dir, slices.Collect(maps.Values(by)))
			var broken, refused []error
			for _, e := range entries {
				broken, refused = append(broken, e.Err), append(refused, by[e.Hash].Err)
			}
			if err := errors.Join(refused...); err != nil && errors.Join(broken...) == nil {
				return hint.New(fmt.Errorf("verify the connectors: %w", err), "install each again from the package that its "+
					"publisher has signed, or remove it with: aileron connector remove NAME@VERSION")
			}
			if err := errors.Join(broken...); err != nil {
				return store.Hint(fmt.Errorf("verify the connectors: %w", err))
			}
			return nil
		},
	}
}
