package launch

import (
	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
	"github.com/ALRubinger/aileron/internal/failure"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/internal/launch"
	"github.com/ALRubinger/aileron/sandbox"
	"github.com/ALRubinger/aileron/sandbox/agents"
)

func NewSandboxRunCommand(a *cli.App) *cobra.Command {
	opts := &cli.SandboxOptions{}
	cmd := &cobra.Command{
		Use:   "run [flags] -- CMD [ARG…]",
		Short: "Run any command in a sealed sandbox",
		Example: `  aileron sandbox run -- curl https://api.github.com/user
  aileron sandbox run --image localhost/my/tools -- bash`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("unattended") {
				return failure.Usagef("--unattended is for agents that aileron knows, with aileron launch: %s; "+
					"pass the switch of another command among its arguments", hint.Listed(agents.Names()))
			}
			if err := opts.Check(false); err != nil {
				return err
			}
			if len(args) == 0 {
				return failure.Usagef("sandbox run takes a command: aileron sandbox run -- CMD")
			}
			if err := a.UseProject(cmd.Context(), &opts.Session, &opts.Sandbox); err != nil {
				return err
			}
			return RunSandboxed(cmd.Context(), a, opts, launch.Sandbox{
				Agent: args[0], Image: sandbox.BaseImage(), Command: args,
			})
		},
	}
	opts.Register(cmd, hint.Alternatives(sandbox.Runtimes()))
	cmd.Flags().BoolVar(&opts.Unattended, "unattended", false, "refused: for aileron launch")
	_ = cmd.Flags().MarkHidden("unattended")
	cmd.Flags().SetInterspersed(false)
	return cmd
}
