package binding

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
	"github.com/ALRubinger/aileron/internal/bindings"
)

func newBindingInspectCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:     "inspect NAME",
		Short:   "Show one binding, never its secret",
		Example: "  aileron binding inspect bearer/aileron-connector-github/work",
		Args:    cli.UsageArgs(cobra.ExactArgs(1)),
		RunE: func(_ *cobra.Command, args []string) error {
			v, err := a.VaultOf()
			if err != nil {
				return err
			}
			b, err := v.Binding(args[0])
			if err != nil {
				return bindings.Hint(err)
			}
			if a.JSON {
				return a.PrintJSON(b)
			}
			fmt.Fprintf(a.Stdout, "name       %s\nconnector  %s\nkind       %s\nidentity   %s\n",
				b.Name, b.Connector, b.Kind, b.Identity)
			if b.Username != "" {
				fmt.Fprintf(a.Stdout, "username   %s\n", b.Username)
			}
			fmt.Fprintf(a.Stdout, "created    %s\nupdated    %s\n",
				b.Created.Format(time.RFC3339), b.Updated.Format(time.RFC3339))
			return nil
		},
	}
}
