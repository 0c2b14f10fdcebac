package setup

import (
	"context"
	"crypto/rand"
	"fmt"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/cmd/aileron/internal/connector"
	"github.com/ALRubinger/aileron/internal/changes"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/sandbox"
	"github.com/ALRubinger/aileron/vault"
)

// apply makes what was planned, each step whole: after an interruption the next setup goes on with the rest.
func (s *Setup) apply(ctx context.Context) error {
	if err := s.MakeVault(ctx); err != nil {
		return err
	}
	install := connector.ConnectorInstallOptions{}
	installed, err := install.Install(ctx, s.App, s.store, s.sources)
	for _, in := range installed {
		s.App.Infof("aileron: installed %s %s", in.Connector.FQN, in.Connector.Version)
	}
	if err != nil {
		return err
	}
	if err := s.bind(ctx); err != nil {
		return err
	}
	if s.options.Launching {
		return nil
	}
	image, err := s.makeImage(ctx)
	if err != nil {
		return err
	}
	return s.report(ctx, image)
}

// MakeVault creates the vault if there is none.
func (s *Setup) MakeVault(ctx context.Context) error {
	if s.Vault.Initialised() || len(s.Bindings) == 0 {
		return nil
	}
	if s.Keyring {
		// The keyring first: a vault whose passphrase was lost could not be opened.
		s.passphrase = []byte(rand.Text() + rand.Text())
		if err := s.App.KeepInKeyring(s.passphrase); err != nil {
			return err
		}
	}
	c := changes.Change{What: audit.ChangeVaultInit}
	if err := s.App.Enact(ctx, c, func() error { return s.Vault.Init(s.passphrase) }); err != nil {
		return err
	}
	s.options.Created = s.Vault
	if s.Keyring {
		s.App.Infof("aileron: vault created; the OS keyring has its passphrase. Choose your own with: aileron vault passwd")
		return nil
	}
	s.App.Infof("aileron: vault created. There is no recovery: without the passphrase every credential must be bound " +
		"again")
	return nil
}

// bind makes the planned bindings.
func (s *Setup) bind(ctx context.Context) (err error) {
	if len(s.Bindings) == 0 {
		return nil
	}
	v := s.Vault
	if !v.Unlocked() {
		if v, err = s.App.SealingVault(ctx, s.options.PassphraseFile); err != nil {
			return err
		}
	}
	batch := s.App.NewBatch()
	defer func() { err = batch.Close(err) }()
	for _, t := range s.Bindings {
		about := audit.Row{ConnectorFQN: t.Connector, ConnectorVersion: t.Version, Binding: t.Name}
		err := batch.Enact(ctx, changes.Change{What: audit.ChangeBindingSetup, About: about},
			func() error { return v.Bind(t.Binding, t.Secret) })
		if err != nil {
			return err
		}
		s.App.Infof("aileron: bound %s", t.Name)
	}
	return nil
}

// makeImage builds the agent's image, unless it is there, and returns its name.
func (s *Setup) makeImage(ctx context.Context) (string, error) {
	if s.options.Engine == "off" || s.noImage {
		return "", nil
	}
	e, err := s.App.FindEngine(ctx, s.options.Engine)
	if err != nil {
		return "", err
	}
	defer e.Close()
	image := sandbox.AgentImage(s.agent.Name, s.agent.Recipe)
	if _, err := e.EnsureImage(ctx, image, "auto", s.App.NewBuildProgress()); err != nil {
		return "", hint.New(fmt.Errorf("build the image of %s: %w", s.agent.Name, err),
			"the rest is set up; go on with: aileron setup %s", s.agent.Name)
	}
	s.App.Infof("aileron: the image of %s is ready", s.agent.Name)
	return image.Ref, nil
}

// report prints the line that launches the agent.
func (s *Setup) report(ctx context.Context, image string) error {
	line := "aileron launch " + s.agent.Name
	if s.options.Engine != "auto" {
		line = "aileron launch --sandbox=" + s.options.Engine + " " + s.agent.Name
	}
	if s.App.JSON {
		return s.App.PrintJSON(map[string]any{
			"agent": s.agent.Name, "bindings": s.made(), "image": image, "launch": line,
		})
	}
	held, _ := s.App.KeptUntil(ctx) // what fails here fails in vault unlock, too, with its reason
	if _, err := vault.FromKeyring(s.Flag); err != nil && s.Vault.Initialised() && held.Until.IsZero() {
		s.App.Infof("aileron: one passphrase for the day: aileron vault unlock --for 8h")
	}
	where := "in the directory of your project"
	if s.noImage {
		where = "once there is an engine, " + where
	}
	s.App.Infof("aileron: %s is set up; start it %s:", s.agent.Name, where)
	fmt.Fprintln(s.App.Stdout, line)
	return nil
}

// made returns the names of the bindings that this run made.
func (s *Setup) made() []string {
	names := []string{}
	for _, t := range s.Bindings {
		names = append(names, t.Name)
	}
	return names
}
