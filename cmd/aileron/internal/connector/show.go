package connector

import (
	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
	"github.com/ALRubinger/aileron/internal/connectors"
)

func newConnectorShowCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:     "show NAME[@VERSION]",
		Short:   "Show what an installed connector grants",
		Example: "  aileron connector show github",
		Args:    cli.UsageArgs(cobra.ExactArgs(1)),
		RunE: func(_ *cobra.Command, args []string) error {
			c, by, err := connectors.InstalledVersion(a.Dir, args[0])
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
