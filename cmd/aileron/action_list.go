package main

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
)

func newActionListCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "list",
		Short:   "List the actions, and whether they can be run",
		Example: "  aileron action list --json",
		Args:    usageArgs(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			s, err := a.openStore()
			if err != nil {
				return err
			}
			l, err := a.actions()
			if err != nil {
				return err
			}
			files, err := l.List()
			if err != nil {
				return err
			}
			all := []actionJSON{}
			for _, f := range files {
				all = append(all, describeAction(s, f))
			}
			if a.json {
				return a.printJSON(all)
			}
			return a.printActions(all)
		},
	}
}

func (a *app) printActions(all []actionJSON) error {
	if len(all) == 0 {
		a.infof("aileron: no actions; add one with: aileron action add FILE")
		return nil
	}
	w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
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
