// Package setup sets up all that an agent needs: its key, the vault, its connectors and its image. Open [Options.Run]
// first: it asks for everything (setup.go), which plan.go and key.go judge, and then makes it (apply.go).
package setup

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/ALRubinger/aileron/internal/bindings"
	"github.com/ALRubinger/aileron/internal/config"
	"github.com/ALRubinger/aileron/internal/failure"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/internal/launch"
	"github.com/ALRubinger/aileron/internal/unlock"
	"github.com/ALRubinger/aileron/sandbox"
	"github.com/ALRubinger/aileron/sandbox/agents"
	"github.com/ALRubinger/aileron/sandbox/engine"
	"github.com/ALRubinger/aileron/spec"
	"github.com/ALRubinger/aileron/vault"
)

// Options are what a setup is about.
type Options struct {
	Agent          string // "": it is asked for
	Provider       string // connector of the catalogue for the agent's model; "": by the key
	KeyFile        string
	GitHubFile     string
	Bindings       map[spec.FQN]string // which identity of a connector to use, where several are bound
	GraphQL        bool                // let gh use GitHub's GraphQL API
	Engine         string              // auto, off, or a kind of engine
	PassphraseFile string
	Yes            bool // ask nothing

	AskBeforeWrites bool // keep in config.toml that each session asks before what writes
	Launching       bool // a launch follows, which builds the image and needs no launch line
	JSON            bool // print the result as JSON

	Login bindings.Login // how logins are made

	FindEngine func(ctx context.Context, kind string) (*sandbox.Engine, error)

	Created *vault.Vault // by Run, unlocked; nil: there was one
}

// Run asks for everything first, and then makes it: a conversation that is broken off has changed nothing.
func (o *Options) Run(ctx context.Context, u *unlock.Unlocker) error {
	if _, ok := agents.Find(o.Agent); o.Agent != "" && !ok {
		return launch.NoAgent(o.Agent)
	}
	if !o.Yes && !u.Interactive() {
		return hint.New(failure.Usagef("setup asks questions, and there is no terminal to ask on"),
			"pass --yes, with --key-file and --passphrase-file")
	}
	s, err := o.ask(ctx, u)
	if err != nil {
		return err
	}
	return s.apply(ctx)
}

// ask returns what is to be made.
func (o *Options) ask(ctx context.Context, u *unlock.Unlocker) (_ *setup, err error) {
	s := &setup{u: u, options: o}
	if !o.Yes {
		if s.talk, err = u.Converse(); err != nil {
			return nil, err
		}
		defer func() {
			if !o.Launching {
				u.DiscardTyped() // first: what is echoed from now on is typed from now on
			}
			s.talk.End()
		}()
		u.Infof("aileron: a few questions first; nothing is made before the last one is answered, and Ctrl-C ends it")
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
	if err := s.chooseIdentities(ctx); err != nil {
		return nil, err
	}
	if err := s.askKey(ctx); err != nil {
		return nil, err
	}
	if err := s.askGitHub(ctx); err != nil {
		return nil, err
	}
	if err := s.askLogins(ctx); err != nil {
		return nil, err
	}
	if err := s.askPassphrase(ctx); err != nil {
		return nil, err
	}
	if err := s.askUnattended(ctx); err != nil {
		return nil, err
	}
	if err := s.askWrites(ctx); err != nil {
		return nil, err
	}
	return s, s.grant(ctx)
}

// chooseAgent sets the agent.
func (s *setup) chooseAgent(ctx context.Context) (err error) {
	name := s.options.Agent
	if name == "" {
		if s.options.Yes {
			return failure.Usagef("setup --yes takes an agent: %s", hint.Listed(agents.Names()))
		}
		if name, err = s.talk.Choose(ctx, "agent", agents.Names()); err != nil {
			return err
		}
	}
	agent, ok := agents.Find(name)
	if !ok {
		return launch.NoAgent(name)
	}
	if p := s.options.Provider; p != "" && !slices.Contains(agent.Connectors, p) {
		return failure.Usagef("--provider %q is none of %s: %s", p, agent.Name, strings.Join(agent.Connectors, ", "))
	}
	s.agent = agent
	return nil
}

// findEngine looks for the engine that builds the image, before a person has typed anything: what can be set up without
// one is worth little. A launch has its own look.
func (s *setup) findEngine(ctx context.Context) error {
	if s.options.Engine == "off" || s.options.Launching {
		return nil
	}
	if s.options.Engine == sandbox.Native {
		s.native = true
		return sandbox.TryNative()
	}
	if s.options.Engine == "auto" && !engine.Installed() && sandbox.TryNative() == nil { // as a launch decides
		s.native = true
		s.u.Infof("aileron: neither Podman nor Docker is installed: sandboxes are native (--sandbox=native), and take %s "+
			"from this host", s.agent.Name)
		return nil
	}
	e, err := s.options.FindEngine(ctx, s.options.Engine)
	if err == nil {
		e.Close()
		return nil
	}
	native := sandbox.TryNative()
	const rest = "set up the rest without an image: --sandbox=off"
	switch {
	case s.talk == nil && native == nil:
		return hint.New(err, "%s; or without an engine, if %s is installed on this host: --sandbox=native", rest,
			s.agent.Name)
	case s.talk == nil:
		return hint.New(err, rest)
	}
	s.u.Infof("aileron: %v", err)
	if native == nil {
		s.u.Infof("aileron: this host can do without an engine, for an agent that is installed on it: "+
			"aileron setup --sandbox=native %s", s.agent.Name)
	} else {
		s.u.Infof("aileron: nor can it do without an engine: %v", native)
		if remedy := hint.Of(native); remedy != "" {
			s.u.Infof("hint: %s", remedy)
		}
	}
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
func (s *setup) askKey(ctx context.Context) error {
	if name, binding := s.boundModel(); name != "" {
		s.u.Infof("aileron: %s is bound already, as %s; replace its key with: aileron binding rebind %s",
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
	key, err := s.secret(ctx, s.options.KeyFile, "--key-file", keyFormOf(provider), func(key string) keyForm {
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
	if s.options.Provider != "" {
		return s.options.Provider, nil
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
	case s.options.KeyFile == "":
		if s.talk == nil {
			return families[0], nil
		}
		return s.talk.Choose(ctx, "provider of the model", families)
	}
	key, err := s.readFile(s.options.KeyFile, "--key-file")
	if err != nil {
		return "", err
	}
	for _, name := range s.agent.Connectors {
		if needsKey(name) && keyFormOf(name).fits(key.Reveal()) {
			return name, nil
		}
	}
	return "", failure.Usagef("the key in %s begins like none of %s; name its provider with --provider",
		s.options.KeyFile, strings.Join(families, ", "))
}

// askGitHub plans the binding of a GitHub token, if a person or a flag gives one.
func (s *setup) askGitHub(ctx context.Context) error {
	const github = "github"
	if binding := s.bindingOf(github); binding != "" {
		s.u.Infof("aileron: %s is bound already, as %s", github, binding)
		return nil
	}
	if s.options.GitHubFile == "" && s.talk == nil {
		return nil
	}
	form := keyFormOf(github)
	token, err := s.secret(ctx, s.options.GitHubFile, "--github-token-file", form,
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
	all := s.options.GraphQL
	if !all && s.talk != nil {
		if all, err = s.talk.Yes(ctx, "most commands of gh, such as gh pr create, need GitHub's GraphQL API: "+
			"a session may then read all that the token may read, and asks you before it merges or deletes; "+
			"allow that?", false); err != nil {
			return err
		}
	}
	if all {
		return s.plan("github-graphql", token)
	}
	return nil
}

// askUnattended asks whether agents ask before they use a tool, unless config.toml has the answer, or no sandbox is
// meant.
func (s *setup) askUnattended(ctx context.Context) error {
	if s.talk == nil || s.options.Engine == "off" || s.noImage {
		return nil
	}
	conf, err := config.Read(s.home)
	if err != nil || conf.Sandbox.Unattended != nil {
		return err
	}
	yes, err := s.talk.Yes(ctx, "in a sealed sandbox, let agents use their tools without asking you before each?", false)
	s.unattended = &yes
	return err
}

// Writes are the requests that write, as METHOD PATH of --approve.
var Writes = []string{"POST *", "PUT *", "PATCH *", "DELETE *"}

// askWrites asks whether a person is asked before requests that write, unless config.toml has the answer. A launch,
// which asks for what is missing alone, does not.
func (s *setup) askWrites(ctx context.Context) error {
	if !s.options.AskBeforeWrites && (s.talk == nil || s.options.Launching) {
		return nil
	}
	conf, err := config.Read(s.home)
	if err != nil || conf.Approval.Approve != nil {
		if err == nil && s.options.AskBeforeWrites && !slices.Equal(conf.Approval.Approve, Writes) {
			return hint.New(failure.Usagef("--ask-before-writes: config.toml has another approve below [approval]"),
				"change it there, or leave the flag out")
		}
		return err
	}
	yes := s.options.AskBeforeWrites
	if !yes {
		if yes, err = s.talk.Yes(ctx, "hold each request that writes ("+hint.Listed(Writes)+") until you have approved it, "+
			"in every session?", false); err != nil {
			return err
		}
	}
	if s.approve = []string{}; yes {
		s.approve = Writes
	}
	return nil
}

// needsVault reports whether there is no vault yet, and something to be kept in one.
func (s *setup) needsVault() bool {
	return !s.vault.Initialised() && len(s.bindings)+len(s.logins) > 0
}

// askPassphrase finds out how a new vault is opened, if there is none.
func (s *setup) askPassphrase(ctx context.Context) (err error) {
	if !s.needsVault() {
		return nil
	}
	u := s.u
	if s.options.PassphraseFile == "" && u.Getenv(string(unlock.FromEnv)) == "" {
		_, err := vault.FromKeyring(s.home)
		switch {
		case err == nil, errors.Is(err, vault.ErrKeyringEmpty):
			s.keyring = true
			u.Infof("aileron: the OS keyring will keep the vault's passphrase, which is made up: there is none to type")
			return nil
		case !errors.Is(err, vault.ErrNoKeyring):
			u.Infof("aileron: %v; the vault gets a passphrase of yours", err)
		}
	}
	if s.passphrase, err = u.Passphrase(ctx, s.options.PassphraseFile, true); err != nil {
		return err
	}
	return vault.CheckPassphrase(s.passphrase)
}
