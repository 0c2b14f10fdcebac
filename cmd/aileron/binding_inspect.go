package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"
)

func newBindingInspectCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "inspect NAME",
		Short:   "Show one binding, never its secret",
		Example: "  aileron binding inspect bearer/aileron-connector-github/work",
		Args:    usageArgs(cobra.ExactArgs(1)),
		RunE: func(_ *cobra.Command, args []string) error {
			v, err := a.vaultOf()
			if err != nil {
				return err
			}
			b, err := v.Binding(args[0])
			if err != nil {
				return bindingError(err)
			}
			if a.json {
				return a.printJSON(b)
			}
			fmt.Fprintf(a.stdout, "name       %s\nconnector  %s\nkind       %s\nidentity   %s\n",
				b.Name, b.Connector, b.Kind, b.Identity)
			if b.Username != "" {
				fmt.Fprintf(a.stdout, "username   %s\n", b.Username)
			}
			fmt.Fprintf(a.stdout, "created    %s\nupdated    %s\n",
				b.Created.Format(time.RFC3339), b.Updated.Format(time.RFC3339))
			return nil
		},
	}
}
