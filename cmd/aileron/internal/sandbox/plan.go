package sandbox

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
	"github.com/ALRubinger/aileron/internal/console"
	"github.com/ALRubinger/aileron/internal/launch"
	"github.com/ALRubinger/aileron/sandbox/devcontainer"
)

func newSandboxPlanCommand(a *cli.App) *cobra.Command {
	opts, agent := &cli.SandboxOptions{}, ""
	cmd := &cobra.Command{
		Use:   "plan",
		Short: "Print what a sandbox of the project is composed of",
		Long: `Print the tier, the image, the user, the variables, the mounts, the ports and the
commands that a sandbox of the project has, by its devcontainer.json, with what is
not in force and what is refused. Nothing is built, started or agreed to. Variables
of this host are printed by their names. The exit code is 1 if something is refused.`,
		Example: `  aileron sandbox plan
  aileron sandbox plan --devcontainer go --json`,
		Args: cli.UsageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			image, _, err := launch.ImageFor(agent)
			if err != nil {
				return err
			}
			plan, err := a.PlanOf(cmd.Context(), &opts.Project, &opts.Sandbox, image)
			if err != nil {
				return err
			}
			return printPlan(a, plan)
		},
	}
	f := cmd.Flags()
	f.StringVar(&opts.Image, "image", "", "run this image instead of aileron's own")
	f.StringVar(&agent, "agent", "", "compose the sandbox of this agent (default: of any command)")
	opts.RegisterCustom(cmd)
	opts.RegisterDir(cmd)
	opts.RegisterProject(cmd)
	opts.RegisterDevcontainer(cmd)
	return cmd
}

// printPlan prints a plan.
func printPlan(a *cli.App, p *devcontainer.Plan) error {
	if a.JSON {
		if err := a.PrintJSON(p); err != nil {
			return err
		}
	} else if _, err := fmt.Fprint(a.Stdout, p.Text()); err != nil {
		return err
	}
	if len(p.Refusals) > 0 {
		return console.Exit(1)
	}
	return nil
}
