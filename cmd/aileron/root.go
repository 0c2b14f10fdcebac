package main

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/cmd/aileron/internal/action"
	"github.com/ALRubinger/aileron/cmd/aileron/internal/allow"
	"github.com/ALRubinger/aileron/cmd/aileron/internal/approval"
	"github.com/ALRubinger/aileron/cmd/aileron/internal/audit"
	"github.com/ALRubinger/aileron/cmd/aileron/internal/binding"
	"github.com/ALRubinger/aileron/cmd/aileron/internal/ca"
	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
	"github.com/ALRubinger/aileron/cmd/aileron/internal/connector"
	"github.com/ALRubinger/aileron/cmd/aileron/internal/demo"
	"github.com/ALRubinger/aileron/cmd/aileron/internal/doctor"
	"github.com/ALRubinger/aileron/cmd/aileron/internal/kube"
	"github.com/ALRubinger/aileron/cmd/aileron/internal/launch"
	"github.com/ALRubinger/aileron/cmd/aileron/internal/learn"
	"github.com/ALRubinger/aileron/cmd/aileron/internal/mcp"
	"github.com/ALRubinger/aileron/cmd/aileron/internal/sandbox"
	"github.com/ALRubinger/aileron/cmd/aileron/internal/session"
	"github.com/ALRubinger/aileron/cmd/aileron/internal/setup"
	"github.com/ALRubinger/aileron/cmd/aileron/internal/spec"
	"github.com/ALRubinger/aileron/cmd/aileron/internal/sync"
	"github.com/ALRubinger/aileron/cmd/aileron/internal/vault"
)

// newRootCommand makes the tree of commands. A command line needs no more of it than the command that it begins with:
// each start of aileron would make several hundred flags. Without args it is the whole tree.
func newRootCommand(a *cli.App, args ...string) *cobra.Command {
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
	if cmd := commandOf(a, args); cmd != nil {
		root.AddCommand(cmd)
		return root
	}
	for _, c := range commands {
		root.AddCommand(c.new(a))
	}
	completer{a}.addCompletion(root)
	root.InitDefaultCompletionCmd()
	for _, cmd := range root.Commands() {
		if cmd.Name() == "completion" { // cobra's own prints its help for a shell that it does not know
			cmd.Args, cmd.RunE = cobra.ArbitraryArgs, cli.SubcommandNeeded
		}
	}
	return root
}

// commands are those of the root, in the order in which help shows them.
// Each command lives in a file of its own name.
var commands = []struct {
	name string
	new  func(*cli.App) *cobra.Command
}{
	{"setup", setup.New},
	{"launch", launch.New},
	{"sandbox", sandbox.New},
	{"run", launch.NewRun},
	{"proxy", launch.NewProxy},
	{"serve", launch.NewServe},
	{"mcp", mcp.New},
	{"allow", allow.New},
	{"learn", learn.New},
	{"approval", approval.New},
	{"sync", sync.New},
	{"connector", connector.New},
	{"action", action.New},
	{"binding", binding.New},
	{"vault", vault.New},
	{"audit", audit.New},
	{"spec", spec.New},
	{"session", session.New},
	{"ca", ca.New},
	{"kube", kube.New},
	{"demo", demo.New},
	{"doctor", doctor.New},
	{"gateway", sandbox.NewGatewayCommand},
	{"detached", cli.NewDetachedCommand},
	{"version", newVersionCommand},
	{manCommand, newManCommand},
}

// commandOf returns the command that a command line begins with; nil if it begins with none, or with man, which writes
// about all.
func commandOf(a *cli.App, args []string) *cobra.Command {
	if len(args) == 0 || args[0] == manCommand {
		return nil
	}
	for _, c := range commands {
		if c.name == args[0] {
			return c.new(a)
		}
	}
	return nil
}
