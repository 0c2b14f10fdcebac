package main

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/sandbox/agents"
	"github.com/ALRubinger/aileron/vault"
)

type setupOptions struct {
	agent          string
	provider       string // connector of the catalogue for the agent's model; "": by the key
	keyFile        string
	githubFile     string
	graphql        bool
	engine         string // as for --sandbox of launch
	passphraseFile string
	yes            bool
	launching      bool // a launch follows, which builds the image and needs no launch line

	created *vault.Vault // by run, unlocked; nil: there was one
}

func newSetupCommand(a *app) *cobra.Command {
	opts := &setupOptions{}
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
				return usagef("setup takes one agent: %s", agentNames())
			}
			opts.agent = strings.Join(args, "")
			if err := oneOf("sandbox", opts.engine, append(knownEngines(), "off")...); err != nil {
				return err
			}
			return opts.run(cmd.Context(), a)
		},
	}
	f := cmd.Flags()
	f.BoolVarP(&opts.yes, "yes", "y", false, "ask nothing, and grant what the connectors ask for")
	f.StringVar(&opts.provider, "provider", "", "connector for the agent's model, such as anthropic or openai")
	f.StringVar(&opts.keyFile, "key-file", "", "file that holds only the agent's key")
	f.StringVar(&opts.githubFile, "github-token-file", "", "file that holds only a GitHub token")
	f.BoolVar(&opts.graphql, "github-graphql", false,
		"let gh use GitHub's GraphQL API too, with all that the token may do")
	f.StringVar(&opts.engine, "sandbox", "auto", "the engine that builds the image: "+
		alternatives(append(knownEngines(), "off (no image)")))
	passphraseFlag(cmd, &opts.passphraseFile)
	return cmd
}

// run asks for everything first, and then makes it: a conversation that is broken off has changed nothing.
func (o *setupOptions) run(ctx context.Context, a *app) error {
	if _, ok := agents.Find(o.agent); o.agent != "" && !ok {
		return noAgent(o.agent)
	}
	if !o.yes && !a.interactive() {
		return hint.New(usagef("setup asks questions, and there is no terminal to ask on"),
			"pass --yes, with --key-file and --passphrase-file")
	}
	s, err := o.ask(ctx, a)
	if err != nil {
		return err
	}
	return s.apply(ctx)
}

// ask returns what is to be made.
func (o *setupOptions) ask(ctx context.Context, a *app) (_ *setup, err error) {
	s := &setup{app: a, options: o}
	if !o.yes {
		if s.talk, err = a.converse(); err != nil {
			return nil, err
		}
		defer func() {
			if !o.launching {
				a.discardTyped() // first: what is echoed from now on is typed from now on
			}
			s.talk.end()
		}()
		a.infof("aileron: a few questions first; nothing is made before the last one is answered, and Ctrl-C ends it")
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
func (s *setup) chooseAgent(ctx context.Context) (err error) {
	name := s.options.agent
	if name == "" {
		if s.options.yes {
			return usagef("setup --yes takes an agent: %s", agentNames())
		}
		if name, err = s.talk.choose(ctx, "agent", agents.Names()); err != nil {
			return err
		}
	}
	agent, ok := agents.Find(name)
	if !ok {
		return noAgent(name)
	}
	if p := s.options.provider; p != "" && !slices.Contains(agent.Connectors, p) {
		return usagef("--provider %q is none of %s: %s", p, agent.Name, strings.Join(agent.Connectors, ", "))
	}
	s.agent = agent
	return nil
}

// findEngine looks for the engine that builds the image, before a person has typed anything: what can be set up without
// one is worth little. A launch has its own look.
func (s *setup) findEngine(ctx context.Context) error {
	if s.options.engine == "off" || s.options.launching {
		return nil
	}
	e, err := s.app.findEngine(ctx, s.options.engine)
	if err == nil {
		e.Close()
		return nil
	}
	if s.talk == nil {
		return hint.New(err, "set up the rest without an image: --sandbox=off")
	}
	s.app.infof("aileron: %v", err)
	yes, askErr := s.talk.yes(ctx, "set up the rest, without an image?", false)
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
func (s *setup) askKey(ctx context.Context) error {
	if name, binding := s.boundModel(); name != "" {
		s.app.infof("aileron: %s is bound already, as %s; replace its key with: aileron binding rebind %s",
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
func (s *setup) chooseProvider(ctx context.Context) (string, error) {
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
		return s.talk.choose(ctx, "provider of the model", families)
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
	return "", usagef("the key in %s begins like none of %s; name its provider with --provider",
		s.options.keyFile, strings.Join(families, ", "))
}

// askGitHub plans the binding of a GitHub token, if a person or a flag gives one.
func (s *setup) askGitHub(ctx context.Context) error {
	const github = "github"
	if binding := s.bindingOf(github); binding != "" {
		s.app.infof("aileron: %s is bound already, as %s", github, binding)
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
		if all, err = s.talk.yes(ctx, "most commands of gh, such as gh pr create, need GitHub's GraphQL API, "+
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
func (s *setup) askPassphrase(ctx context.Context) (err error) {
	if s.vault.Initialised() || len(s.bindings) == 0 {
		return nil
	}
	a := s.app
	if s.options.passphraseFile == "" && a.getenv(string(fromEnv)) == "" {
		_, err := vault.FromKeyring(s.home)
		switch {
		case err == nil, errors.Is(err, vault.ErrKeyringEmpty):
			s.keyring = true
			a.infof("aileron: the OS keyring will keep the vault's passphrase, which is made up: there is none to type")
			return nil
		case !errors.Is(err, vault.ErrNoKeyring):
			a.infof("aileron: %v; the vault gets a passphrase of yours", err)
		}
	}
	if s.passphrase, err = a.passphrase(ctx, s.options.passphraseFile, true); err != nil {
		return err
	}
	return vault.CheckPassphrase(s.passphrase)
}
