package main

import (
	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/spec"
	"github.com/ALRubinger/aileron/spec/signature"
	"github.com/ALRubinger/aileron/spec/store"
)

func newConnectorShowCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "show NAME[@VERSION]",
		Short:   "Show what an installed connector grants",
		Example: "  aileron connector show github",
		Args:    usageArgs(cobra.ExactArgs(1)),
		RunE: func(_ *cobra.Command, args []string) error {
			c, by, err := a.installedConnector(args[0])
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(describeSigned(c, by))
			}
			printConnector(a.stdout, c, by, a.outputColumns())
			return nil
		},
	}
}

// installedConnector returns NAME[@VERSION] of the store, verified, and who published it; the newest version if none is
// named.
func (a *app) installedConnector(name string) (*spec.Connector, publisher, error) {
	s, entries, err := a.installed()
	if err != nil {
		return nil, publisher{}, err
	}
	chosen, err := a.chosenEntries(entries, name)
	if err != nil {
		return nil, publisher{}, err
	}
	found := chosen[len(chosen)-1]
	c, err := s.Load(found.Hash)
	if err != nil {
		return nil, publisher{}, store.Hint(err)
	}
	return c, a.checkInstalled(s, signature.ClaimOf(c)), nil
}
