package setup

import (
	"context"
	"crypto/rand"
	"fmt"
	"maps"
	"slices"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/internal/bindings"
	"github.com/ALRubinger/aileron/internal/changes"
	"github.com/ALRubinger/aileron/internal/config"
	"github.com/ALRubinger/aileron/internal/connectors"
	"github.com/ALRubinger/aileron/internal/console"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/sandbox"
	"github.com/ALRubinger/aileron/vault"
)

// apply makes what was planned, each step whole: after an interruption the next setup goes on with the rest.
func (s *setup) apply(ctx context.Context) error {
	if err := s.makeVault(ctx); err != nil {
		return err
	}
	install := connectors.Installer{Console: s.u.Console, Dir: s.u.Dir, Recorder: s.u.Recorder}
	if !s.options.JSON {
		install.Faults = s.u.Infof
	}
	installed, err := install.Install(ctx, s.store, s.sources)
	for _, in := range installed {
		s.u.Infof("aileron: installed %s %s", in.Connector.FQN, in.Connector.Version)
	}
	if err != nil {
		return err
	}
	if err := s.bind(ctx); err != nil {
		return err
	}
	if err := s.keepUnattended(); err != nil {
		return err
	}
	if err := s.keepWrites(); err != nil {
		return err
	}
	if s.options.Launching {
		return s.logIn(ctx)
	}
	image, err := s.makeImage(ctx)
	if err != nil {
		return err
	}
	if err := s.logIn(ctx); err != nil {
		return err
	}
	return s.report(ctx, image)
}

// makeVault creates the vault if there is none.
func (s *setup) makeVault(ctx context.Context) error {
	if !s.needsVault() {
		return nil
	}
	if s.keyring {
		// The keyring first: a vault whose passphrase was lost could not be opened.
		s.passphrase = []byte(rand.Text() + rand.Text())
		if err := s.u.KeepInKeyring(s.passphrase); err != nil {
			return err
		}
	}
	c := changes.Change{What: audit.ChangeVaultInit}
	if err := s.u.Enact(ctx, c, func() error { return s.vault.Init(s.passphrase) }); err != nil {
		return err
	}
	s.options.Created = s.vault
	if s.keyring {
		s.u.Infof("aileron: vault created; the OS keyring has its passphrase. Choose your own with: aileron vault passwd")
		return nil
	}
	s.u.Infof("aileron: vault created. There is no recovery: without the passphrase every credential must be bound " +
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
		if v, err = s.u.SealingVault(ctx, s.options.PassphraseFile); err != nil {
			return err
		}
	}
	return bindings.BindAll(ctx, s.u.Recorder, v, s.bindings, func(name string) error {
		s.u.Infof("aileron: bound %s", name)
		return nil
	})
}

// keepUnattended puts the answer about unattended agents into config.toml.
func (s *setup) keepUnattended() error {
	if s.unattended == nil {
		return nil
	}
	if err := config.KeepUnattended(s.home, *s.unattended); err != nil {
		return err
	}
	s.u.Infof("aileron: config.toml has unattended = %v below [sandbox]; for one launch: --unattended=%v", *s.unattended,
		!*s.unattended)
	return nil
}

// keepWrites puts the answer about requests that write into config.toml.
func (s *setup) keepWrites() error {
	if s.approve == nil {
		return nil
	}
	if err := config.KeepApprove(s.home, s.approve); err != nil {
		return err
	}
	if len(s.approve) > 0 {
		s.u.Infof("aileron: config.toml has what waits for your approval below [approval]; see it with: " +
			"aileron approval list -f")
	}
	return nil
}

// makeImage builds the agent's image, unless it is there, and returns its name.
func (s *setup) makeImage(ctx context.Context) (string, error) {
	if s.options.Engine == "off" || s.noImage || s.native {
		return "", nil
	}
	if s.agent.Recipe == nil {
		s.u.Infof("aileron: there is no recipe for an image of %[1]s: docs/agents.md has the lines of an aileron.Dockerfile "+
			"that installs it, or name an image that has it: aileron launch --image NAME %[1]s", s.agent.Name)
		return "", nil
	}
	e, err := s.options.FindEngine(ctx, s.options.Engine)
	if err != nil {
		return "", err
	}
	defer e.Close()
	image := sandbox.AgentImage(s.agent.Name, s.agent.Recipe)
	if _, err := e.EnsureImage(ctx, image, "auto", s.u.NewBuildProgress(console.BuildLog(s.home))); err != nil {
		return "", hint.New(fmt.Errorf("build the image of %s: %w", s.agent.Name, err),
			"the rest is set up; go on with: aileron setup %s", s.agent.Name)
	}
	s.u.Infof("aileron: the image of %s is ready", s.agent.Name)
	return image.Ref, nil
}

// report prints the line that launches the agent.
func (s *setup) report(ctx context.Context, image string) error {
	line := "aileron launch "
	if s.options.Engine != "auto" {
		line += "--sandbox=" + s.options.Engine + " "
	}
	for _, fqn := range slices.Sorted(maps.Keys(s.identities)) {
		line += "--bind " + shortName(fqn) + "=" + s.identities[fqn] + " "
	}
	line += s.agent.Name
	if s.options.JSON {
		return s.u.PrintJSON(map[string]any{
			"agent": s.agent.Name, "bindings": s.made(), "image": image, "launch": line,
		})
	}
	held, _ := s.u.KeptUntil(ctx) // what fails here fails in vault unlock, too, with its reason
	if _, err := vault.FromKeyring(s.home); err != nil && s.vault.Initialised() && held.Until.IsZero() {
		s.u.Infof("aileron: one passphrase for the day: aileron vault unlock --for 8h")
	}
	where := "in the directory of your project"
	if s.noImage {
		where = "once there is an engine, " + where
	}
	s.u.Infof("aileron: %s is set up; start it %s:", s.agent.Name, where)
	fmt.Fprintln(s.u.Stdout, line)
	return nil
}

// made returns the names of the bindings that this run made.
func (s *setup) made() []string {
	names := []string{}
	for _, t := range s.bindings {
		names = append(names, t.Name)
	}
	return append(names, s.loggedIn...)
}
