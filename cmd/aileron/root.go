package main

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/cmd/aileron/internal/action"
	"github.com/ALRubinger/aileron/cmd/aileron/internal/allow"
	"github.com/ALRubinger/aileron/cmd/aileron/internal/audit"
	"github.com/ALRubinger/aileron/cmd/aileron/internal/binding"
	"github.com/ALRubinger/aileron/cmd/aileron/internal/ca"
	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
	"github.com/ALRubinger/aileron/cmd/aileron/internal/connector"
	"github.com/ALRubinger/aileron/cmd/aileron/internal/demo"
	"github.com/ALRubinger/aileron/cmd/aileron/internal/doctor"
	"github.com/ALRubinger/aileron/cmd/aileron/internal/launch"
	"github.com/ALRubinger/aileron/cmd/aileron/internal/sandbox"
	"github.com/ALRubinger/aileron/cmd/aileron/internal/session"
	"github.com/ALRubinger/aileron/cmd/aileron/internal/setup"
	"github.com/ALRubinger/aileron/cmd/aileron/internal/spec"
	"github.com/ALRubinger/aileron/cmd/aileron/internal/sync"
	"github.com/ALRubinger/aileron/cmd/aileron/internal/vault"
)

func newRootCommand(a *cli.App) *cobra.Command {
	root := &cobra.Command{
		Use:   "aileron",
		Short: "Run AI agents in sealed sandboxes behind a credential-injecting HTTPS proxy",
		Example: `  aileron demo                  # see it work, with nothing set up
  aileron setup claude          # its key, a vault, connectors, an image
  aileron launch claude         # the agent, sealed, in this directory
  aileron audit tail -f         # what it does, as it happens`,
		Version:       thisBuild().String(),
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.ArbitraryArgs,
		RunE:          cli.SubcommandNeeded,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			a.LogLevel = strings.ToLower(a.LogLevel)
			if err := cli.OneOf("log-level", a.LogLevel, "debug", "info", "warn", "error"); err != nil {
				return err
			}
			if !cmd.Hidden { // those that aileron starts itself
				a.SettleChanges(cmd.Context())
				if name := cli.CommandName(cmd); name != "doctor" && name != "ca untrust" { // which report it
					ca.SettleTrust(cmd.Context(), a)
				}
			}
			return nil
		},
	}
	root.SetOut(a.Stdout)
	root.SetErr(a.Stderr)
	root.SetIn(a.Stdin)
	root.SetFlagErrorFunc(cli.UsageFlags)
	root.SetHelpCommand(cli.NewHelpCommand())
	a.WrapHelp(root)
	flags := root.PersistentFlags()
	flags.StringVar(&a.Flag, "home", "", "aileron's directory (default ~/.aileron, or AILERON_HOME)")
	flags.BoolVar(&a.JSON, "json", false, "print JSON")
	flags.StringVar(&a.LogLevel, "log-level", "warn", "debug, info, warn or error")
	root.AddCommand(commands(a)...)
	completer{a}.addCompletion(root)
	root.InitDefaultCompletionCmd()
	for _, cmd := range root.Commands() {
		if cmd.Name() == "completion" { // cobra's own prints its help for a shell that it does not know
			cmd.Args, cmd.RunE = cobra.ArbitraryArgs, cli.SubcommandNeeded
		}
	}
	return root
}

// commands is the command tree, in the order in which help shows it.
// Each command lives in a file of its own name.
func commands(a *cli.App) []*cobra.Command {
	return []*cobra.Command{
		setup.New(a),
		launch.New(a),
		sandbox.New(a),
		launch.NewRun(a),
		launch.NewProxy(a),
		allow.New(a),
		sync.New(a),
		connector.New(a),
		action.New(a),
		binding.New(a),
		vault.New(a),
		audit.New(a),
		spec.New(a),
		session.New(a),
		ca.New(a),
		demo.New(a),
		doctor.New(a),
		sandbox.NewGatewayCommand(a),
		cli.NewDetachedCommand(a),
		newVersionCommand(a),
		newManCommand(),
	}
}
