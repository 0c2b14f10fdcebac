package setup

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/ALRubinger/aileron/internal/bindings"
	"github.com/ALRubinger/aileron/internal/connectors"
	"github.com/ALRubinger/aileron/internal/console"
	"github.com/ALRubinger/aileron/internal/failure"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/internal/unlock"
	"github.com/ALRubinger/aileron/sandbox/agents"
	"github.com/ALRubinger/aileron/spec"
	"github.com/ALRubinger/aileron/spec/catalog"
	"github.com/ALRubinger/aileron/spec/store"
	"github.com/ALRubinger/aileron/vault"
)

// setup is one run of aileron setup: what is there, and what is to be made.
type setup struct {
	u       *unlock.Unlocker
	options *Options
	talk    *console.Conversation // nil: nothing is asked

	home      string
	vault     *vault.Vault
	store     *store.Store
	agent     agents.Agent
	installed []*spec.Connector
	bound     []vault.Binding
	names     *vault.Names

	identities map[spec.FQN]string // that were chosen
	sources    []store.Source      // connectors to be installed
	fresh      []*spec.Connector   // the same
	bindings   []bindings.Target
	logins     []*spec.Connector // whose logins are made last
	loggedIn   []string          // the bindings of those that were made
	passphrase []byte            // of a new vault
	keyring    bool              // a new vault's passphrase is made, and kept in the OS keyring
	unattended *bool             // to be kept in config.toml; nil: nothing is
	approve    []string          // likewise: the requests that are asked about
	noImage    bool              // no engine responds, and a person goes on without
	native     bool              // sandboxes have this host's programs, and no image
}

// errSkipped is returned for a secret that a person does not give.
var errSkipped = errors.New("no secret was given")

// readState reads what is there.
func (s *setup) readState() (err error) {
	if s.home, err = s.u.Home(); err != nil {
		return err
	}
	s.vault = s.u.VaultAt(s.home)
	if s.store, err = s.u.OpenStore(); err != nil {
		return err
	}
	var faults []error
	if s.installed, faults = s.store.Current(); len(faults) > 0 {
		return store.Hint(fmt.Errorf("verify the installed connectors: %w", errors.Join(faults...)))
	}
	if s.bound, err = s.vault.Bindings(); err != nil && !errors.Is(err, vault.ErrNotInitialised) {
		return err
	}
	s.names, err = s.vault.Names()
	return err
}

// connector returns the installed connector of the catalogue's name, and nil if there is none.
func (s *setup) connector(name string) *spec.Connector {
	for _, c := range s.installed {
		if c.FQN == catalog.FQN(name) {
			return c
		}
	}
	return nil
}

// bindingOf returns the name of the binding of an installed connector of the catalogue, and "" if it has none.
func (s *setup) bindingOf(name string) string {
	c := s.connector(name)
	if c == nil || c.Credential() == nil {
		return ""
	}
	for _, b := range s.bound {
		if b.Connector == string(c.FQN) && spec.Kind(b.Kind) == c.Credential().Kind &&
			b.Identity == cmp.Or(s.identities[c.FQN], b.Identity) {
			return b.Name
		}
	}
	return ""
}

// boundModel returns the agent's connector that is bound, and its binding.
func (s *setup) boundModel() (name, binding string) {
	for _, name := range s.agent.Connectors {
		if binding := s.bindingOf(name); binding != "" {
			return name, binding
		}
	}
	return "", ""
}

// needsKey reports whether a connector of the catalogue needs a credential.
func needsKey(name string) bool {
	entry, ok := catalog.Find(name)
	return ok && entry.NeedsSecret()
}

// plan plans a connector of the catalogue, and the binding of a secret to it if it needs one.
func (s *setup) plan(name string, secret vault.Secret) error {
	entry, ok := catalog.Find(name)
	if !ok {
		return fmt.Errorf("set up %s: the catalogue has no such connector", name)
	}
	c := s.connector(name)
	if c == nil {
		var err error
		if c, err = store.ReadFS(entry.Files); err != nil {
			return err
		}
		s.fresh = append(s.fresh, c)
		s.sources = append(s.sources, store.Source{Src: name, Hash: c.Hash, Files: entry.Files})
		// Two connectors that would put different credentials into one request are refused together.
		if _, err := spec.NewIndex(slices.Concat(s.installed, s.fresh)); err != nil {
			return hint.New(fmt.Errorf("set up %s: %w", name, err), "remove the other one with: aileron connector remove FQN")
		}
	}
	if c.Credential() == nil || s.bindingOf(name) != "" {
		return nil
	}
	b := vault.Binding{Kind: string(c.Credential().Kind), Connector: string(c.FQN), Identity: "default"}
	var err error
	if b.Name, err = s.names.Of(b.Kind, b.Connector, b.Identity); err != nil {
		return err
	}
	s.bindings = append(s.bindings, bindings.Target{Binding: b, Version: c.Version, Secret: secret})
	return nil
}

// secret returns the secret in a file, or the one that is typed. A secret that has another form than expected is
// asked for again if the person says so; a script is warned.
func (s *setup) secret(ctx context.Context, file, flag string, asked keyForm, expected func(string) keyForm,
) (vault.Secret, error) {
	if file != "" || s.talk == nil {
		secret, err := s.readFile(file, flag)
		if err != nil {
			return secret, err
		}
		if doubt := expected(secret.Reveal()).doubt(secret.Reveal()); doubt != "" {
			s.u.Infof("aileron: warning: %s: the key %s", flag, doubt)
		}
		return secret, nil
	}
	for range console.MaxTries {
		secret, err := s.typed(ctx, asked)
		if errors.Is(err, errBadSecret) {
			s.u.Infof("aileron: %v; try again", err)
			continue
		}
		if err != nil {
			return secret, err
		}
		doubt := expected(secret.Reveal()).doubt(secret.Reveal())
		if doubt == "" {
			return secret, nil
		}
		use, err := s.talk.Yes(ctx, "it "+doubt+"; use it anyway?", false)
		if err != nil || use {
			return secret, err
		}
	}
	return vault.Secret{}, fmt.Errorf("ask for the %s: none was accepted", asked.what)
}

// errBadSecret is returned for a text that cannot be a secret.
var errBadSecret = errors.New("this cannot be used")

// typed asks for a secret once. GitHub's token may be left out.
func (s *setup) typed(ctx context.Context, form keyForm) (vault.Secret, error) {
	optional := form.connector == "github"
	what := form.what
	if optional {
		what += ", for clone and push (Enter: none)"
	} else if form.or != "" && slices.Contains(s.agent.Connectors, form.connector+"-oauth") {
		what += ", or " + form.or
	}
	raw, err := s.u.ReadUnseen(ctx, what)
	if err != nil {
		return vault.Secret{}, err
	}
	if len(raw) == 0 && optional {
		return vault.Secret{}, errSkipped
	}
	secret, err := vault.NewSecret(raw)
	if err != nil {
		return secret, fmt.Errorf("%w: %w", errBadSecret, err)
	}
	return secret, nil
}

func (s *setup) readFile(file, flag string) (vault.Secret, error) {
	if file == "" {
		return vault.Secret{}, failure.Usagef("setup --yes takes the key of %s from a file: %s FILE", s.agent.Name, flag)
	}
	raw, err := s.u.ReadSecretFile(file, vault.MaxSecret)
	if err != nil {
		return vault.Secret{}, hint.New(fmt.Errorf("read %s: %w", flag, err),
			"name a readable file that holds only the secret")
	}
	secret, err := vault.NewSecret(raw)
	if err != nil {
		return secret, hint.New(fmt.Errorf("read %s: %w", flag, err), "give only the secret, in one line")
	}
	return secret, nil
}

// grant prints what the connectors grant, and returns an error unless that is confirmed.
func (s *setup) grant(ctx context.Context) error {
	if len(s.fresh) == 0 {
		return nil
	}
	out := bufio.NewWriter(s.u.Stderr)
	for _, c := range s.fresh {
		connectors.SummariseConnector(out, c, nil, connectors.Publishers{}.Of(c), s.u.Columns())
	}
	_ = out.Flush()
	if s.talk == nil {
		return nil
	}
	what := "this connector"
	if len(s.fresh) > 1 {
		what = fmt.Sprintf("these %d connectors", len(s.fresh))
	}
	yes, err := s.talk.YesOr(ctx, "install "+what+" and grant this? (? lists every operation)", true,
		func() { connectors.PrintWhole(s.u.Console, s.fresh, nil) })
	if err == nil && !yes {
		err = failure.Declined("not set up: it was not confirmed, and nothing was made")
	}
	return err
}
