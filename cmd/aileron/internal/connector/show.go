package connector

import (
	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
	"github.com/ALRubinger/aileron/internal/connectors"
	"github.com/ALRubinger/aileron/spec"
	"github.com/ALRubinger/aileron/spec/signature"
	"github.com/ALRubinger/aileron/spec/store"
)

func newConnectorShowCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:     "show NAME[@VERSION]",
		Short:   "Show what an installed connector grants",
		Example: "  aileron connector show github",
		Args:    cli.UsageArgs(cobra.ExactArgs(1)),
		RunE: func(_ *cobra.Command, args []string) error {
			c, by, err := installedConnector(a, args[0])
			if err != nil {
				return err
			}
			if a.JSON {
				return a.PrintJSON(connectors.DescribeSigned(c, by))
			}
			connectors.PrintConnector(a.Stdout, c, by, a.OutputColumns())
			return nil
		},
	}
}

// installedConnector returns NAME[@VERSION] of the store, verified, and who published it; the newest version if none is
// named.
func installedConnector(a *cli.App, name string) (*spec.Connector, connectors.Publisher, error) {
	s, entries, err := a.Installed()
	if err != nil {
		return nil, connectors.Publisher{}, err
	}
	chosen, err := chosenEntries(a, entries, name)
	if err != nil {
		return nil, connectors.Publisher{}, err
	}
	found := chosen[len(chosen)-1]
	c, err := s.Load(found.Hash)
	if err != nil {
		return nil, connectors.Publisher{}, store.Hint(err)
	}
	return c, connectors.CheckInstalled(a.Dir, s, signature.ClaimOf(c)), nil
}
