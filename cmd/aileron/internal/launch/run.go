package launch

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
	"github.com/ALRubinger/aileron/internal/failure"
	"github.com/ALRubinger/aileron/internal/launch"
)

func NewRun(a *cli.App) *cobra.Command {
	opts := &cli.SessionOptions{}
	cmd := &cobra.Command{
		Use:   "run [flags] -- CMD [ARG…]",
		Short: "Run a command on this host behind the proxy (cooperative)",
		Long: `Run a command with a session of its own: the proxy and trust variables point at
the session's proxy, and the connectors' placeholders are set. There is no
sandbox: a program that ignores the variables is not mediated, and it can read
what you can read. The exit code is the command's, 127 if there is no such
command, and 126 if it cannot be executed.`,
		Example: `  aileron run -- gh api user
  aileron run --resolve api.github.com:443:127.0.0.1:8443 --upstream-ca ca.pem -- curl https://api.github.com/user`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := opts.Check(); err != nil {
				return err
			}
			if len(args) == 0 {
				return failure.Usagef("run takes a command: aileron run -- CMD")
			}
			return RunOnHost(cmd.Context(), a, opts, launch.HostCommand{Agent: args[0], Args: args})
		},
	}
	opts.Register(cmd)
	opts.RegisterQuiet(cmd)
	opts.RegisterProject(cmd)
	cmd.Flags().SetInterspersed(false)
	return cmd
}

// RunOnHost runs a command on this host with a session of its own. The command is looked up before the home is opened:
// the exit code for a missing one is a shell's, whatever the state of the home.
func RunOnHost(ctx context.Context, a *cli.App, opts *cli.SessionOptions, c launch.HostCommand) (err error) {
	if c.Path, err = launch.FindCommand(c.Args[0]); err != nil {
		return err
	}
	if err := a.UseProject(ctx, &opts.Session, nil); err != nil {
		return err
	}
	l, err := Launcher(a, opts)
	if err != nil {
		return err
	}
	return l.OnHost(ctx, c)
}
