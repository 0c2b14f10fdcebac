package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/audit"
)

func newActionRemoveCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "remove NAME",
		Short:   "Remove an action; running sessions lose it within a second",
		Example: "  aileron action remove file-followup",
		Args:    usageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			f, err := a.foundAction(args[0])
			if err != nil {
				return err
			}
			l, err := a.actions()
			if err != nil {
				return err
			}
			s, err := a.openStore()
			if err != nil {
				return err
			}
			gone := describeAction(s, f)
			fields := map[string]any{"action": f.Name}
			if f.Action != nil {
				fields["action_version"], fields["hash"] = f.Action.Version, f.Action.Hash
			}
			about := audit.Row{Fields: fields}
			err = a.enact(cmd.Context(), change{what: audit.ChangeActionRemove, about: about},
				func() error { return l.Remove(f.Name) })
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(gone)
			}
			_, err = fmt.Fprintf(a.stdout, "removed %s\n", f.Name)
			return err
		},
	}
}
