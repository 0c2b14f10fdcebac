package main

import (
	"context"
	"crypto/rand"
	"fmt"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/sandbox"
	"github.com/ALRubinger/aileron/vault"
)

// apply makes what was planned, each step whole: after an interruption the next setup goes on with the rest.
func (s *setup) apply(ctx context.Context) error {
	if err := s.makeVault(ctx); err != nil {
		return err
	}
	install := connectorInstallOptions{}
	installed, err := install.install(ctx, s.app, s.store, s.sources)
	for _, in := range installed {
		s.app.infof("aileron: installed %s %s", in.Connector.FQN, in.Connector.Version)
	}
	if err != nil {
		return err
	}
	if err := s.bind(ctx); err != nil {
		return err
	}
	if s.options.launching {
		return nil
	}
	image, err := s.makeImage(ctx)
	if err != nil {
		return err
	}
	return s.report(ctx, image)
}

// makeVault creates the vault if there is none.
func (s *setup) makeVault(ctx context.Context) error {
	if s.vault.Initialised() || len(s.bindings) == 0 {
		return nil
	}
	if s.keyring {
		// The keyring first: a vault whose passphrase was lost could not be opened.
		s.passphrase = []byte(rand.Text() + rand.Text())
		if err := s.app.keepInKeyring(s.passphrase); err != nil {
			return err
		}
	}
	c := change{what: audit.ChangeVaultInit}
	if err := s.app.enact(ctx, c, func() error { return s.vault.Init(s.passphrase) }); err != nil {
		return err
	}
	s.options.created = s.vault
	if s.keyring {
		s.app.infof("aileron: vault created; the OS keyring has its passphrase. Choose your own with: aileron vault passwd")
		return nil
	}
	s.app.infof("aileron: vault created. There is no recovery: without the passphrase every credential must be bound " +
		"again")
	return nil
}

// bind makes the planned bindings.
func (s *setup) bind(ctx context.Context) (err error) {
	if len(s.bindings) == 0 {
		return nil
	}
	v := s.vault
	if !v.Unlocked() {
		if v, err = s.app.sealingVault(ctx, s.options.passphraseFile); err != nil {
			return err
		}
	}
	changes := s.app.newChanges()
	defer func() { err = changes.close(err) }()
	for _, t := range s.bindings {
		about := audit.Row{ConnectorFQN: t.Connector, ConnectorVersion: t.version, Binding: t.Name}
		err := changes.enact(ctx, change{what: audit.ChangeBindingSetup, about: about},
			func() error { return v.Bind(t.Binding, t.secret) })
		if err != nil {
			return err
		}
		s.app.infof("aileron: bound %s", t.Name)
	}
	return nil
}

// makeImage builds the agent's image, unless it is there, and returns its name.
func (s *setup) makeImage(ctx context.Context) (string, error) {
	if s.options.engine == "off" || s.noImage {
		return "", nil
	}
	e, err := s.app.findEngine(ctx, s.options.engine)
	if err != nil {
		return "", err
	}
	defer e.Close()
	image := sandbox.AgentImage(s.agent.Name, s.agent.Recipe)
	if _, err := e.EnsureImage(ctx, image, "auto", s.app.newBuildProgress()); err != nil {
		return "", hint.New(fmt.Errorf("build the image of %s: %w", s.agent.Name, err),
			"the rest is set up; go on with: aileron setup %s", s.agent.Name)
	}
	s.app.infof("aileron: the image of %s is ready", s.agent.Name)
	return image.Ref, nil
}

// report prints the line that launches the agent.
func (s *setup) report(ctx context.Context, image string) error {
	line := "aileron launch " + s.agent.Name
	if s.options.engine != "auto" {
		line = "aileron launch --sandbox=" + s.options.engine + " " + s.agent.Name
	}
	if s.app.json {
		return s.app.printJSON(map[string]any{
			"agent": s.agent.Name, "bindings": s.made(), "image": image, "launch": line,
		})
	}
	held, _ := s.app.keptUntil(ctx) // what fails here fails in vault unlock, too, with its reason
	if _, err := vault.FromKeyring(s.home); err != nil && s.vault.Initialised() && held.Until.IsZero() {
		s.app.infof("aileron: one passphrase for the day: aileron vault unlock --for 8h")
	}
	where := "in the directory of your project"
	if s.noImage {
		where = "once there is an engine, " + where
	}
	s.app.infof("aileron: %s is set up; start it %s:", s.agent.Name, where)
	fmt.Fprintln(s.app.stdout, line)
	return nil
}

// made returns the names of the bindings that this run made.
func (s *setup) made() []string {
	names := []string{}
	for _, t := range s.bindings {
		names = append(names, t.Name)
	}
	return names
}
