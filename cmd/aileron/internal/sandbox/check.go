package sandbox

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
	"github.com/ALRubinger/aileron/internal/console"
	"github.com/ALRubinger/aileron/internal/failure"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/internal/launch"
	"github.com/ALRubinger/aileron/sandbox"
	"github.com/ALRubinger/aileron/sandbox/agents"
)

type sandboxCheckOptions struct {
	cli.SandboxOptions
	agent string
}

func newSandboxCheckCommand(a *cli.App) *cobra.Command {
	opts := &sandboxCheckOptions{}
	cmd := &cobra.Command{
		Use:   "check --agent=CMD",
		Short: "Check that an image can run a command, without a session",
		Long: `Prepare the image as launch does, and check what launch checks before it starts
an agent: the image's user, its architecture, the command on its PATH, a shell
for an agent that is known by name, and whether the command may write to the
project. The agent, the packages and the Dockerfile of the project's .aileron.toml
count as they do for launch. The exit code is 1 if something is missing.`,
		Example: `  aileron sandbox check --agent=opencode
  aileron sandbox check --image localhost/my/tools --agent=bash`,
		Args: cli.UsageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := opts.CheckImage(false); err != nil {
				return err
			}
			if err := a.UseProjectImage(cmd.Context(), &opts.Project, &opts.Sandbox); err != nil {
				return err
			}
			if file := opts.Project.File; file != nil && opts.agent == "" {
				opts.agent = file.Agent
			}
			if opts.agent == "" {
				return failure.Usagef("sandbox check takes a command: aileron sandbox check --agent=CMD")
			}
			// It may build an image, as sandbox build does.
			return a.Interruptible(cmd.Context(), func(ctx context.Context) error { return opts.run(ctx, a) })
		},
	}
	opts.RegisterImage(cmd, hint.Alternatives(sandbox.Kinds()))
	opts.RegisterProject(cmd)
	cmd.Flags().StringVar(&opts.agent, "agent", "", "an agent by name, or any command (default: the project's agent)")
	return cmd
}

func (o *sandboxCheckOptions) run(ctx context.Context, a *cli.App) error {
	image, command, needs := sandbox.BaseImage(), o.agent, []string(nil)
	if agent, ok := agents.Find(o.agent); ok {
		image, command = sandbox.AgentImage(agent.Name, agent.Recipe), agent.Commands[0]
		needs = launch.AgentNeeds(agent)
	}
	home, conf, err := a.Settings()
	if err != nil {
		return err
	}
	if image, err = a.ImageOf(&o.Sandbox, image, conf.Sandbox.Packages); err != nil {
		return err
	}
	engine, err := a.FindEngine(ctx, o.Engine)
	if err != nil {
		return err
	}
	defer engine.Close()
	if image, err = a.MakeImage(ctx, engine, &o.Sandbox, image, o.agent, o.Build); err != nil {
		return err
	}
	r, err := launch.CheckImage(ctx, engine, image, launch.Checked{Home: home, Dir: o.Dir, Command: command, Needs: needs,
		Log: a.Logger()})
	if err != nil {
		return err
	}
	if err := printReport(a, r); err != nil {
		return err
	}
	if len(r.Missing) > 0 {
		return console.Exit(1)
	}
	return nil
}

func printReport(a *cli.App, r launch.ImageReport) error {
	if a.JSON {
		return a.PrintJSON(r)
	}
	_, err := fmt.Fprintf(a.Stdout, "tier: %s\nruntime: %s\nimage: %s\ncommand: %s\nsupport: %s\n",
		r.Tier, r.Runtime, r.Image, r.Command, r.Support)
	return err
}
