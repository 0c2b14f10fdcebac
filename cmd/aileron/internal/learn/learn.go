// Package learn has the command aileron learn, which proposes a connector for what sessions did.
package learn

import (
	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
	"github.com/ALRubinger/aileron/internal/propose"
)

func New(a *cli.App) *cobra.Command {
	var dir string
	var diff bool
	cmd := &cobra.Command{
		Use:   "learn SESSION...",
		Short: "Propose a connector for what recorded sessions did",
		Long: `Propose a connector for what sessions did and no installed connector allows, such as
sessions that ran with --learn. Nothing is installed: review what -o writes, and install it.`,
		Example: "  aileron learn 01J… -o ./learnt\n  aileron learn 01J… --diff",
		Args:    cli.UsageArgs(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := propose.FromSessions(cmd.Context(), a.Dir, args)
			if err == nil && dir != "" {
				err = p.Write(dir)
			}
			if err != nil {
				return err
			}
			if diff {
				p.Compare()
			}
			if dir != "" {
				a.Infof("aileron: nothing is installed yet; next: aileron connector install %s", dir)
			}
			if a.JSON {
				return a.PrintJSON(p)
			}
			return p.Print(a.Stdout, a.OutputColumns())
		},
	}
	cmd.Flags().StringVarP(&dir, "output", "o", "", "write the connector into this directory")
	cmd.Flags().BoolVar(&diff, "diff", false, "show what it grants more and less than what is installed")
	return cmd
}
