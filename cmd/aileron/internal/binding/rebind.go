package binding

import (
	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
	"github.com/ALRubinger/aileron/internal/bindings"
)

func newBindingRebindCommand(a *cli.App) *cobra.Command {
	from := bindings.SecretSource{}
	cmd := &cobra.Command{
		Use:     "rebind NAME",
		Short:   "Replace a binding's secret; running sessions use the new one within a second",
		Example: "  aileron binding rebind bearer/aileron-connector-github/work --secret-file token.txt",
		Args:    cli.UsageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkSecret(&from); err != nil {
				return err
			}
			if err := bindings.Rebind(cmd.Context(), &a.Unlocker, args[0], from); err != nil {
				return err
			}
			a.Infof("aileron: replaced the secret of %s", args[0])
			return nil
		},
	}
	registerSecret(cmd, &from)
	return cmd
}
