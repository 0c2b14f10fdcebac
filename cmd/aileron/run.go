package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/internal/launch"
)

func newRunCommand(a *app) *cobra.Command {
	opts := &sessionOptions{}
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
			if err := opts.check(); err != nil {
				return err
			}
			if len(args) == 0 {
				return usagef("run takes a command: aileron run -- CMD")
			}
			return a.runOnHost(cmd.Context(), opts, launch.HostCommand{Agent: args[0], Args: args})
		},
	}
	opts.register(cmd)
	opts.registerQuiet(cmd)
	opts.registerProject(cmd)
	cmd.Flags().SetInterspersed(false)
	return cmd
}

// runOnHost runs a command on this host with a session of its own. The command is looked up before the home is opened:
// the exit code for a missing one is a shell's, whatever the state of the home.
func (a *app) runOnHost(ctx context.Context, opts *sessionOptions, c launch.HostCommand) (err error) {
	if c.Path, err = launch.FindCommand(c.Args[0]); err != nil {
		return err
	}
	if err := a.useProject(opts, nil); err != nil {
		return err
	}
	l, err := a.launcher(opts)
	if err != nil {
		return err
	}
	return l.OnHost(ctx, c)
}
