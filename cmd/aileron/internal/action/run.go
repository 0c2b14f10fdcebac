package action

import (
	"context"
	"fmt"
	"io"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
	launchcmd "github.com/ALRubinger/aileron/cmd/aileron/internal/launch"
	"github.com/ALRubinger/aileron/internal/actions"
	"github.com/ALRubinger/aileron/internal/console"
	"github.com/ALRubinger/aileron/internal/failure"
	"github.com/ALRubinger/aileron/internal/launch"
	"github.com/ALRubinger/aileron/spec"
)

type actionRunOptions struct {
	cli.SessionOptions
	args string
}

func newActionRunCommand(a *cli.App) *cobra.Command {
	opts := &actionRunOptions{}
	cmd := &cobra.Command{
		Use:   "run NAME --args JSON",
		Short: "Run an action in a session of its own, and print the response",
		Long: "Run an action in a session of its own, which uses the connectors that the action\n" +
			"pins and no other. It prints the body of the response to the last call; with --json\n" +
			"an object with its status too. The exit code is 0, 1 if it is denied or the upstream\n" +
			"responds with an error, 2 for arguments that the action does not declare, and 75 if\n" +
			"an approval is pending. --args - reads the arguments from stdin.",
		Example: `  aileron action run file-followup --args '{"project": "ACME", "title": "Document it"}'`,
		Args:    cli.UsageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := opts.Check(); err != nil {
				return err
			}
			return opts.run(cmd.Context(), a, args[0])
		},
	}
	opts.Register(cmd)
	cmd.Flags().StringVar(&opts.args, "args", "{}", "the arguments, a JSON object; - reads them from stdin")
	return cmd
}

func (o *actionRunOptions) run(ctx context.Context, a *cli.App, name string) error {
	f, err := actions.Find(a.Dir, name)
	if err != nil {
		return err
	}
	args, err := o.arguments(a)
	if err != nil {
		return err
	}
	if len(o.Connectors) == 0 && f.Action != nil {
		if o.Connectors, err = actions.InstalledPins(a.Dir, f.Action.Requires); err != nil {
			return err
		}
	}
	ctx, stopSignals := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stopSignals()
	l, err := launchcmd.Launcher(a, &o.SessionOptions)
	if err != nil {
		return err
	}
	code, err := l.During(ctx, launch.Host{Agent: "action " + name, Mode: "off", Listen: "127.0.0.1:0"},
		"the action ended", func(ctx context.Context, host *launch.HostSession) (int, error) {
			return actions.Call(ctx, a.Console, a.JSON, host, name, args)
		})
	if err != nil || code == 0 {
		return err
	}
	return console.Exit(code)
}

// arguments returns the JSON of --args, checked for what would make it several things at once.
func (o *actionRunOptions) arguments(a *cli.App) ([]byte, error) {
	args := []byte(o.args)
	if o.args == "-" {
		var err error
		if args, err = io.ReadAll(io.LimitReader(a.Stdin, spec.MaxSize+1)); err != nil {
			return nil, fmt.Errorf("read the arguments from stdin: %w", err)
		}
	}
	if _, err := spec.ReadObject(args); err != nil {
		return nil, failure.Usagef("--args is no JSON object: %v", err)
	}
	return args, nil
}
