package launch

import (
	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
	"github.com/ALRubinger/aileron/internal/failure"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/internal/launch"
	"github.com/ALRubinger/aileron/sandbox"
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
			if err := opts.Check(false); err != nil {
				return err
			}
			if len(args) == 0 {
				return failure.Usagef("sandbox run takes a command: aileron sandbox run -- CMD")
			}
			if err := a.UseProject(&opts.Session, &opts.Sandbox); err != nil {
				return err
			}
			return RunSandboxed(cmd.Context(), a, opts, launch.Sandbox{
				Agent: args[0], Image: sandbox.BaseImage(), Command: args,
			})
		},
	}
	opts.Register(cmd, hint.Alternatives(sandbox.Kinds()))
	cmd.Flags().SetInterspersed(false)
	return cmd
}
