// Package setup has the command aileron setup, whose conversation is in internal/setup.
package setup

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
	"github.com/ALRubinger/aileron/internal/failure"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/internal/project"
	"github.com/ALRubinger/aileron/internal/setup"
	"github.com/ALRubinger/aileron/sandbox"
	"github.com/ALRubinger/aileron/sandbox/agents"
)

func New(a *cli.App) *cobra.Command {
	opts, chosen, up := Options(a), project.Session{}, cli.UpstreamOptions{}
	cmd := &cobra.Command{
		Use:   "setup [AGENT]",
		Short: "Set up an agent: its key, the vault, its connectors and its image",
		Long: `Set up everything that an agent needs, in one conversation: its key, optionally a
GitHub token, the vault, the connectors that use them, and the agent's image. What
is there already stays as it is, so setup can be run again: after an interruption
it goes on, and with another agent it adds that one. With --yes nothing is asked,
and the secrets come from files.`,
		Example: `  aileron setup claude
  aileron setup opencode --yes --key-file key.txt --github-token-file token.txt --passphrase-file passphrase.txt`,
		Args:      cobra.ArbitraryArgs,
		ValidArgs: agents.Names(),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return failure.Usagef("setup takes one agent: %s", hint.Listed(agents.Names()))
			}
			opts.Agent = strings.Join(args, "")
			if err := cli.OneOf("sandbox", opts.Engine, append(sandbox.Runtimes(), "off")...); err != nil {
				return err
			}
			if err := cli.CheckBinds(chosen.Binds); err != nil {
				return err
			}
			var err error
			if opts.Bindings, err = chosen.Bindings(a.Dir); err != nil {
				return err
			}
			opts.JSON = a.JSON // a flag, which is parsed now
			return opts.Run(cmd.Context(), &a.Unlocker)
		},
	}
	f := cmd.Flags()
	f.BoolVarP(&opts.Yes, "yes", "y", false, "ask nothing, and grant what the connectors ask for")
	f.StringVar(&opts.Provider, "provider", "", "connector for the agent's model, such as anthropic or openai")
	f.StringVar(&opts.KeyFile, "key-file", "", "file that holds only the agent's key")
	f.StringVar(&opts.GitHubFile, "github-token-file", "", "file that holds only a GitHub token")
	f.BoolVar(&opts.GraphQL, "github-graphql", false,
		"let gh use GitHub's GraphQL API too: it reads all that the token may read")
	f.BoolVar(&opts.AskBeforeWrites, "ask-before-writes", false,
		"have every session ask you before a request that writes: "+hint.Listed(setup.Writes))
	f.StringArrayVar(&chosen.Binds, "bind", nil,
		"CONNECTOR=IDENTITY: which binding to use of a connector that has several (repeatable)")
	f.StringVar(&opts.Engine, "sandbox", "auto", "the engine that builds the image: "+
		hint.Alternatives(append(sandbox.Runtimes(), "off (no image)")))
	cli.PassphraseFlag(cmd, &opts.PassphraseFile)
	up.Register(cmd)
	opts.Login.Upstream = a.ReachServices(&up)
	return cmd
}

// Options returns the options of a setup that no flag is about.
func Options(a *cli.App) *setup.Options {
	return &setup.Options{JSON: a.JSON, FindEngine: a.FindEngine}
}
