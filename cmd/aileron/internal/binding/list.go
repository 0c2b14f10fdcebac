package binding

import (
	"errors"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
	"github.com/ALRubinger/aileron/vault"
	"github.com/ALRubinger/aileron/vault/oauth"
)

func newBindingListCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:     "list",
		Short:   "List the bindings",
		Example: "  aileron binding list --json",
		Args:    cli.UsageArgs(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			v, err := a.VaultOf()
			if err != nil {
				return err
			}
			all, err := v.Bindings()
			if errors.Is(err, vault.ErrNotInitialised) {
				err = nil
			}
			if err != nil && len(all) == 0 {
				return err
			}
			// What can be read is listed even when something else cannot.
			return errors.Join(printBindings(a, all), err)
		},
	}
}

func printBindings(a *cli.App, all []vault.Binding) error {
	if a.JSON {
		return a.PrintJSON(append([]vault.Binding{}, all...)) // [] and not null
	}
	if len(all) == 0 {
		a.Infof("aileron: no bindings; create one with: aileron binding setup CONNECTOR")
	}
	w := tabwriter.NewWriter(a.FittedOut(), 0, 0, 2, ' ', 0)
	for _, b := range all {
		fmt.Fprintf(w, "%s\t%s\t%s", b.Name, b.Connector, b.Updated.Format(time.DateOnly))
		if b.Login != "" || b.Renewal != "" {
			fmt.Fprintf(w, "\t%s", oauth.Describe(b))
		}
		fmt.Fprintln(w)
	}
	return w.Flush()
}
