package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

func newRootCommand(a *app) *cobra.Command {
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
		RunE:          subcommandNeeded,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			a.logLevel = strings.ToLower(a.logLevel)
			if err := oneOf("log-level", a.logLevel, "debug", "info", "warn", "error"); err != nil {
				return err
			}
			if !cmd.Hidden { // those that aileron starts itself
				a.settleChanges(cmd.Context())
				if name := commandName(cmd); name != "doctor" && name != "ca untrust" { // which report it
					a.settleTrust(cmd.Context())
				}
			}
			return nil
		},
	}
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	root.SetIn(a.stdin)
	root.SetFlagErrorFunc(usageFlags)
	root.SetHelpCommand(newHelpCommand())
	a.wrapHelp(root)
	flags := root.PersistentFlags()
	flags.StringVar(&a.home, "home", "", "aileron's directory (default ~/.aileron, or AILERON_HOME)")
	flags.BoolVar(&a.json, "json", false, "print JSON")
	flags.StringVar(&a.logLevel, "log-level", "warn", "debug, info, warn or error")
	root.AddCommand(commands(a)...)
	a.addCompletion(root)
	root.InitDefaultCompletionCmd()
	for _, cmd := range root.Commands() {
		if cmd.Name() == "completion" { // cobra's own prints its help for a shell that it does not know
			cmd.Args, cmd.RunE = cobra.ArbitraryArgs, subcommandNeeded
		}
	}
	return root
}

// commands is the command tree, in the order in which help shows it.
// Each command lives in a file of its own name.
func commands(a *app) []*cobra.Command {
	return []*cobra.Command{
		newSetupCommand(a),
		newLaunchCommand(a),
		newSandboxCommand(a),
		newRunCommand(a),
		newProxyCommand(a),
		newAllowCommand(a),
		newSyncCommand(a),
		newConnectorCommand(a),
		newActionCommand(a),
		newBindingCommand(a),
		newVaultCommand(a),
		newAuditCommand(a),
		newSpecCommand(a),
		newSessionCommand(a),
		newCACommand(a),
		newDemoCommand(a),
		newDoctorCommand(a),
		newGatewayCommand(a),
		newDetachedCommand(a),
		newVersionCommand(a),
		newManCommand(),
	}
}

// asksJSON reports whether --json is among aileron's own arguments.
func asksJSON(args []string) bool {
	if end := slices.Index(args, "--"); end >= 0 {
		args = args[:end]
	}
	return slices.Contains(args, "--json")
}
