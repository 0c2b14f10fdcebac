package action

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
	"github.com/ALRubinger/aileron/internal/actions"
)

func newActionListCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:     "list",
		Short:   "List the actions, and whether they can be run",
		Example: "  aileron action list --json",
		Args:    cli.UsageArgs(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			s, err := a.OpenStore()
			if err != nil {
				return err
			}
			l, err := a.Actions()
			if err != nil {
				return err
			}
			files, err := l.List()
			if err != nil {
				return err
			}
			all := []actions.JSON{}
			for _, f := range files {
				all = append(all, actions.Describe(s, f))
			}
			if a.JSON {
				return a.PrintJSON(all)
			}
			return printActions(a, all)
		},
	}
}

func printActions(a *cli.App, all []actions.JSON) error {
	if len(all) == 0 {
		a.Infof("aileron: no actions; add one with: aileron action add FILE")
		return nil
	}
	w := tabwriter.NewWriter(a.Stdout, 0, 0, 2, ' ', 0)
	for _, j := range all {
		var pins []string
		for _, p := range j.Connectors {
			pins = append(pins, p.FQN+"@"+p.Version)
		}
		state := "ok"
		switch {
		case !j.OK:
			state = "cannot be run: " + j.Error
		case j.Edited:
			state = "ok, edited"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", j.Name, j.Version, strings.Join(pins, ","), state)
	}
	return w.Flush()
}
