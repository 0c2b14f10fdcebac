package binding

import (
	"cmp"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
	"github.com/ALRubinger/aileron/internal/bindings"
)

func newBindingRebindCommand(a *cli.App) *cobra.Command {
	from, in, up := bindings.SecretSource{}, bindings.Login{}, cli.UpstreamOptions{}
	cmd := &cobra.Command{
		Use:     "rebind NAME",
		Short:   "Replace a binding's secret, or log in again; running sessions use the new one within a second",
		Example: "  aileron binding rebind bearer/aileron-connector-github/work --secret-file token.txt",
		Args:    cli.UsageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := cmp.Or(checkSecret(&from), checkLogin(&in)); err != nil {
				return err
			}
			if err := bindings.Rebind(cmd.Context(), &a.Unlocker, args[0], from, in); err != nil {
				return err
			}
			a.Infof("aileron: replaced the secret of %s", args[0])
			return nil
		},
	}
	registerSecret(cmd, &from)
	registerLogin(cmd, a, &in, &up)
	return cmd
}
