package connector

import (
	"cmp"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
	"github.com/ALRubinger/aileron/internal/connectors"
	"github.com/ALRubinger/aileron/spec/store"
)

func newConnectorListCommand(a *cli.App) *cobra.Command {
	var inCatalog bool
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List the installed connectors, or those that can be installed by name",
		Example: "  aileron connector list --json\n  aileron connector list --catalog",
		Args:    cli.UsageArgs(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			s, entries, err := a.Installed()
			if err != nil {
				return err
			}
			if inCatalog {
				return printCatalog(a, entries)
			}
			return printEntries(a, entries, connectors.CheckEntries(a.Dir, s, entries))
		},
	}
	cmd.Flags().BoolVar(&inCatalog, "catalog", false, "list what can be installed by name")
	return cmd
}

func printEntries(a *cli.App, entries []store.Entry, by connectors.Publishers) error {
	if a.JSON {
		return a.PrintJSON(connectors.DescribeEntries(entries, by))
	}
	if len(entries) == 0 {
		a.Infof("aileron: no connectors installed; install one with: aileron connector install NAME " +
			"(see aileron connector list --catalog)")
		return nil
	}
	w := tabwriter.NewWriter(a.FittedOut(), 0, 0, 2, ' ', 0)
	for _, e := range entries {
		j := connectors.DescribeEntry(e, by)
		state := "ok, " + strings.ReplaceAll(by[e.Hash].State(), "_", " ")
		if p := by[e.Hash]; p.Status.Signed {
			state += " " + p.Status.Key.ID().String()
		}
		switch {
		case e.Err == nil && !j.OK:
			state = "signature refused: " + by[e.Hash].Why()
		case !j.OK:
			state = "broken: " + j.Error
			if _, unread := store.Unreadable(e.Err); unread {
				state = "unreadable: " + j.Error
			}
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", cmp.Or(j.FQN, "-"), cmp.Or(j.Version, "-"), connectors.ShortHash(j.Hash), state)
	}
	return w.Flush()
}
