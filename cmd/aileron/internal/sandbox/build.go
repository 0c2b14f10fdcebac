package sandbox

import (
	"cmp"
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/internal/launch"
	"github.com/ALRubinger/aileron/sandbox"
)

type sandboxBuildOptions struct {
	cli.SandboxOptions
	agent   string
	missing bool // build only what is not there
}

func newSandboxBuildCommand(a *cli.App) *cobra.Command {
	opts := &sandboxBuildOptions{}
	cmd := &cobra.Command{
		Use:   "build",
		Short: "Build the image that a sandbox of the project runs",
		Long: `Build the image that launch and sandbox run use in the project directory: aileron's
base image, or an agent's, with the packages and the Dockerfile of the flags, of
config.toml and of the project's .aileron.toml, which also names the agent.`,
		Example: `  aileron sandbox build --agent opencode
  aileron sandbox build --agent claude --packages tree --if-missing`,
		Args: cli.UsageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := cli.OneOf("sandbox", opts.Engine, sandbox.Kinds()...); err != nil {
				return err
			}
			// Podman goes on with the build of a client that is killed.
			return a.Interruptible(cmd.Context(), func(ctx context.Context) error { return opts.run(ctx, a) })
		},
	}
	f := cmd.Flags()
	opts.RegisterEngine(cmd, hint.Alternatives(sandbox.Kinds()))
	opts.RegisterCustom(cmd)
	opts.RegisterDir(cmd)
	opts.RegisterProject(cmd)
	opts.RegisterDevcontainer(cmd)
	f.StringVar(&opts.agent, "agent", "", "build this agent's image (default: the project's agent)")
	f.BoolVar(&opts.missing, "if-missing", false, "only when it is not there")
	return cmd
}

func (o *sandboxBuildOptions) run(ctx context.Context, a *cli.App) error {
	o.Devcontainer.Anew = !o.missing
	if err := a.UseProjectImage(ctx, &o.Project, &o.Sandbox); err != nil {
		return err
	}
	if file := o.Project.File; file != nil {
		o.agent = cmp.Or(o.agent, file.Agent)
	}
	image, _, err := launch.ImageFor(o.agent)
	if err != nil {
		return err
	}
	_, conf, err := a.Settings()
	if err != nil {
		return err
	}
	if image, err = a.ImageOf(&o.Sandbox, image, conf.Sandbox.Packages); err != nil {
		return err
	}
	policy := "always"
	if o.missing {
		policy = "auto"
	}
	e, err := a.FindEngine(ctx, o.Engine)
	if err != nil {
		return err
	}
	defer e.Close()
	if image, err = a.MakeImage(ctx, e, &o.Sandbox, image, o.agent, policy); err != nil {
		return err
	}
	if a.JSON {
		return a.PrintJSON(map[string]string{"image": image.Ref, "runtime": e.Describe()})
	}
	_, err = fmt.Fprintln(a.Stdout, image.Ref)
	return err
}
