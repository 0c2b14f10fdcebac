package action

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
	"github.com/ALRubinger/aileron/internal/actions"
)

func newActionShowCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:     "show NAME",
		Short:   "Show what an action calls, and its text",
		Example: "  aileron action show file-followup",
		Args:    cli.UsageArgs(cobra.ExactArgs(1)),
		RunE: func(_ *cobra.Command, args []string) error {
			f, err := actions.Find(a.Dir, args[0])
			if err != nil {
				return err
			}
			s, err := a.OpenStore()
			if err != nil {
				return err
			}
			if a.JSON {
				return a.PrintJSON(actions.Describe(s, f))
			}
			if f.Action == nil {
				return actions.Fault(f.Name, f.Err)
			}
			actions.Print(a.Stdout, s, f.Action)
			if !f.Added {
				a.Infof("aileron: the file was edited since it was added, or was put there by hand")
			}
			_, err = fmt.Fprintf(a.Stdout, "\n%s", strings.TrimLeft(f.Action.Body, "\r\n"))
			return err
		},
	}
}
