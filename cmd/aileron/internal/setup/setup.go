// Package setup has the command aileron setup, the first-run conversation. plan.go holds what was answered, apply.go
// carries it out.
package setup

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
	"github.com/ALRubinger/aileron/internal/failure"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/internal/unlock"
	"github.com/ALRubinger/aileron/sandbox"
	"github.com/ALRubinger/aileron/sandbox/agents"
	"github.com/ALRubinger/aileron/vault"
)

type SetupOptions struct {
	Agent          string
	provider       string // connector of the catalogue for the agent's model; "": by the key
	keyFile        string
	githubFile     string
	graphql        bool
	Engine         string // as for --sandbox of launch
	PassphraseFile string
	yes            bool
	Launching      bool // a launch follows, which builds the image and needs no launch line

	Created *vault.Vault // by run, unlocked; nil: there was one
}

func New(a *cli.App) *cobra.Command {
	opts := &SetupOptions{}
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
				return failure.Usagef("setup takes one agent: %s", cli.AgentNames())
			}
			opts.Agent = strings.Join(args, "")
			if err := cli.OneOf("sandbox", opts.Engine, append(sandbox.Kinds(), "off")...); err != nil {
				return err
			}
			return opts.Run(cmd.Context(), a)
		},
	}
	f := cmd.Flags()
	f.BoolVarP(&opts.yes, "yes", "y", false, "ask nothing, and grant what the connectors ask for")
	f.StringVar(&opts.provider, "provider", "", "connector for the agent's model, such as anthropic or openai")
	f.StringVar(&opts.keyFile, "key-file", "", "file that holds only the agent's key")
	f.StringVar(&opts.githubFile, "github-token-file", "", "file that holds only a GitHub token")
	f.BoolVar(&opts.graphql, "github-graphql", false,
		"let gh use GitHub's GraphQL API too, with all that the token may do")
	f.StringVar(&opts.Engine, "sandbox", "auto", "the engine that builds the image: "+
		hint.Alternatives(append(sandbox.Kinds(), "off (no image)")))
	cli.PassphraseFlag(cmd, &opts.PassphraseFile)
	return cmd
}

// Run asks for everything first, and then makes it: a conversation that is broken off has changed nothing.
func (o *SetupOptions) Run(ctx context.Context, a *cli.App) error {
	if _, ok := agents.Find(o.Agent); o.Agent != "" && !ok {
		return cli.NoAgent(o.Agent)
	}
	if !o.yes && !a.Interactive() {
		return hint.New(failure.Usagef("setup asks questions, and there is no terminal to ask on"),
			"pass --yes, with --key-file and --passphrase-file")
	}
	s, err := o.ask(ctx, a)
	if err != nil {
		return err
	}
	return s.apply(ctx)
}

// ask returns what is to be made.
func (o *SetupOptions) ask(ctx context.Context, a *cli.App) (_ *Setup, err error) {
	s := &Setup{App: a, options: o}
	if !o.yes {
		if s.talk, err = a.Converse(); err != nil {
			return nil, err
		}
		defer func() {
			if !o.Launching {
				a.DiscardTyped() // first: what is echoed from now on is typed from now on
			}
			s.talk.End()
		}()
		a.Infof("aileron: a few questions first; nothing is made before the last one is answered, and Ctrl-C ends it")
	}
	if err := s.chooseAgent(ctx); err != nil {
		return nil, err
	}
	if err := s.findEngine(ctx); err != nil {
		return nil, err
	}
	if err := s.readState(); err != nil {
		return nil, err
	}
	if err := s.askKey(ctx); err != nil {
		return nil, err
	}
	if err := s.askGitHub(ctx); err != nil {
		return nil, err
	}
	if err := s.askPassphrase(ctx); err != nil {
		return nil, err
	}
	return s, s.grant(ctx)
}

// chooseAgent sets the agent.
func (s *Setup) chooseAgent(ctx context.Context) (err error) {
	name := s.options.Agent
	if name == "" {
		if s.options.yes {
			return failure.Usagef("setup --yes takes an agent: %s", cli.AgentNames())
		}
		if name, err = s.talk.Choose(ctx, "agent", agents.Names()); err != nil {
			return err
		}
	}
	agent, ok := agents.Find(name)
	if !ok {
		return cli.NoAgent(name)
	}
	if p := s.options.provider; p != "" && !slices.Contains(agent.Connectors, p) {
		return failure.Usagef("--provider %q is none of %s: %s", p, agent.Name, strings.Join(agent.Connectors, ", "))
	}
	s.agent = agent
	return nil
}

// findEngine looks for the engine that builds the image, before a person has typed anything: what can be set up without
// one is worth little. A launch has its own look.
func (s *Setup) findEngine(ctx context.Context) error {
	if s.options.Engine == "off" || s.options.Launching {
		return nil
	}
	e, err := s.App.FindEngine(ctx, s.options.Engine)
	if err == nil {
		e.Close()
		return nil
	}
	if s.talk == nil {
		return hint.New(err, "set up the rest without an image: --sandbox=off")
	}
	s.App.Infof("aileron: %v", err)
	yes, askErr := s.talk.Yes(ctx, "set up the rest, without an image?", false)
	if askErr != nil {
		return askErr
	}
	if !yes {
		return errors.New("not set up: there is no engine, and nothing was made")
	}
	s.noImage = true
	return nil
}

// askKey plans the binding of the agent's key, unless one is bound.
func (s *Setup) askKey(ctx context.Context) error {
	if name, binding := s.boundModel(); name != "" {
		s.App.Infof("aileron: %s is bound already, as %s; replace its key with: aileron binding rebind %s",
			name, binding, binding)
		return nil
	}
	provider, err := s.chooseProvider(ctx)
	if err != nil {
		return err
	}
	if !needsKey(provider) {
		return s.plan(provider, vault.Secret{})
	}
	key, err := s.secret(ctx, s.options.keyFile, "--key-file", keyFormOf(provider), func(key string) keyForm {
		return keyFormOf(providerOf(s.agent, provider, key))
	})
	if err != nil {
		return err
	}
	return s.plan(providerOf(s.agent, provider, key.Reveal()), key)
}

// chooseProvider returns the connector for the model: the one that is named or installed, or whose key was given in a
// file, or the one that is chosen.
func (s *Setup) chooseProvider(ctx context.Context) (string, error) {
	if s.options.provider != "" {
		return s.options.provider, nil
	}
	var families []string
	for _, name := range s.agent.Connectors {
		if s.connector(name) != nil {
			return name, nil // it has no credential yet, or needs none
		}
		if !slices.ContainsFunc(families, func(f string) bool { return sameHost(f, name) }) {
			families = append(families, name)
		}
	}
	switch {
	case len(families) == 1:
		return families[0], nil
	case s.options.keyFile == "":
		if s.talk == nil {
			return families[0], nil
		}
		return s.talk.Choose(ctx, "provider of the model", families)
	}
	key, err := s.readFile(s.options.keyFile, "--key-file")
	if err != nil {
		return "", err
	}
	for _, name := range s.agent.Connectors {
		if needsKey(name) && keyFormOf(name).fits(key.Reveal()) {
			return name, nil
		}
	}
	return "", failure.Usagef("the key in %s begins like none of %s; name its provider with --provider",
		s.options.keyFile, strings.Join(families, ", "))
}

// askGitHub plans the binding of a GitHub token, if a person or a flag gives one.
func (s *Setup) askGitHub(ctx context.Context) error {
	const github = "github"
	if binding := s.bindingOf(github); binding != "" {
		s.App.Infof("aileron: %s is bound already, as %s", github, binding)
		return nil
	}
	if s.options.githubFile == "" && s.talk == nil {
		return nil
	}
	form := keyFormOf(github)
	token, err := s.secret(ctx, s.options.githubFile, "--github-token-file", form,
		func(string) keyForm { return form })
	if errors.Is(err, errSkipped) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := s.plan(github, token); err != nil {
		return err
	}
	all := s.options.graphql
	if !all && s.talk != nil {
		if all, err = s.talk.Yes(ctx, "most commands of gh, such as gh pr create, need GitHub's GraphQL API, "+
			"where a session may do all that the token may do; allow that?", false); err != nil {
			return err
		}
	}
	if all {
		return s.plan("github-graphql", token)
	}
	return nil
}

// askPassphrase finds out how a new vault is opened, if there is none.
func (s *Setup) askPassphrase(ctx context.Context) (err error) {
	if s.Vault.Initialised() || len(s.Bindings) == 0 {
		return nil
	}
	a := s.App
	if s.options.PassphraseFile == "" && a.Getenv(string(unlock.FromEnv)) == "" {
		_, err := vault.FromKeyring(s.Flag)
		switch {
		case err == nil, errors.Is(err, vault.ErrKeyringEmpty):
			s.Keyring = true
			a.Infof("aileron: the OS keyring will keep the vault's passphrase, which is made up: there is none to type")
			return nil
		case !errors.Is(err, vault.ErrNoKeyring):
			a.Infof("aileron: %v; the vault gets a passphrase of yours", err)
		}
	}
	if s.passphrase, err = a.Passphrase(ctx, s.options.PassphraseFile, true); err != nil {
		return err
	}
	return vault.CheckPassphrase(s.passphrase)
}
