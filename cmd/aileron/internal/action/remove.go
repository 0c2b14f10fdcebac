package action

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
	"github.com/ALRubinger/aileron/internal/actions"
	"github.com/ALRubinger/aileron/internal/changes"
)

func newActionRemoveCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:     "remove NAME",
		Short:   "Remove an action; running sessions lose it within a second",
		Example: "  aileron action remove file-followup",
		Args:    cli.UsageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			f, err := actions.Find(a.Dir, args[0])
			if err != nil {
				return err
			}
			l, err := a.Actions()
			if err != nil {
				return err
			}
			s, err := a.OpenStore()
			if err != nil {
				return err
			}
			gone := actions.Describe(s, f)
			fields := map[string]any{"action": f.Name}
			if f.Action != nil {
				fields["action_version"], fields["hash"] = f.Action.Version, f.Action.Hash
			}
			about := audit.Row{Fields: fields}
			err = a.Enact(cmd.Context(), changes.Change{What: audit.ChangeActionRemove, About: about},
				func() error { return l.Remove(f.Name) })
			if err != nil {
				return err
			}
			if a.JSON {
				return a.PrintJSON(gone)
			}
			_, err = fmt.Fprintf(a.Stdout, "removed %s\n", f.Name)
			return err
		},
	}
}
