// Package learn has the command aileron learn, which proposes a connector for what sessions did.
package learn

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
	"github.com/ALRubinger/aileron/internal/propose"
)

func New(a *cli.App) *cobra.Command {
	var dir string
	var diff, unused bool
	cmd := &cobra.Command{
		Use:   "learn SESSION... | --unused",
		Short: "Propose a connector for what recorded sessions did",
		Long: `Propose a connector for what sessions did and no installed connector allows, such as
sessions that ran with --learn. Nothing is installed: review what -o writes, and install it.
With --unused, print what installed connectors grant and 30 days of the log did not use, as
an .aileron.toml for a project that needs no more.`,
		Example: "  aileron learn 01J… -o ./learnt\n  aileron learn 01J… --diff\n  aileron learn --unused",
		Args: cli.UsageArgs(func(cmd *cobra.Command, args []string) error {
			if unused {
				return cobra.NoArgs(cmd, args)
			}
			return cobra.MinimumNArgs(1)(cmd, args)
		}),
		RunE: func(cmd *cobra.Command, args []string) error {
			if unused {
				u, err := propose.FindUnused(cmd.Context(), a.Dir, time.Now().AddDate(0, 0, -propose.UnusedDays))
				if err == nil && a.JSON {
					return a.PrintJSON(u)
				}
				if err == nil {
					u.Print(a.Stdout)
				}
				return err
			}
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
	cmd.Flags().BoolVar(&unused, "unused", false, "print what installed connectors grant and nothing used")
	cmd.MarkFlagsMutuallyExclusive("unused", "output")
	cmd.MarkFlagsMutuallyExclusive("unused", "diff")
	return cmd
}
