package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/spec/store"
	"github.com/ALRubinger/aileron/vault"
)

// interruptedChange is one change, with the act that a killed command may or
// may not have reached.
type interruptedChange struct {
	change
	act func() error
}

// changesOf returns each change that commands make, at the home of o, which
// has the GitHub connector and its binding.
func (o owner) changesOf() []interruptedChange {
	o.t.Helper()
	s, err := store.Open(filepath.Join(o.home, "store"))
	fatal(o.t, err)
	anthropic := filepath.Join(exampleGitHub, "..", "anthropic")
	github, err := store.Read(exampleGitHub)
	fatal(o.t, err)
	other, err := store.Read(anthropic)
	fatal(o.t, err)
	v := vault.Open(filepath.Join(o.home, "vault"), cheapVaults()...)
	fatal(o.t, v.Unlock([]byte(testPassphrase)))
	secret, err := vault.NewSecret([]byte(testToken + "2"))
	fatal(o.t, err)
	bound, fresh := githubBinding+"work", githubBinding+"home"
	digest := func(name string) string {
		d, err := v.Digest(name)
		fatal(o.t, err)
		return d
	}
	binding := func(name string) audit.Row { return audit.Row{ConnectorFQN: githubFQN, Binding: name} }
	return []interruptedChange{
		{change{what: audit.ChangeConnectorInstall, about: aboutConnector(string(other.FQN), other.Version, other.Hash)},
			func() error {
				_, err := s.Install(o.t.Context(), anthropic, store.InstallOptions{})
				return err
			}},
		{change{what: audit.ChangeBindingSetup, about: binding(fresh)}, func() error {
			return v.Bind(vault.Binding{Name: fresh, Kind: "bearer", Connector: githubFQN, Identity: "home"}, secret)
		}},
		{change{what: audit.ChangeBindingRebind, about: binding(bound), before: digest(bound)},
			func() error { return v.Rebind(bound, "", secret) }},
		{change{what: audit.ChangeBindingRevoke, about: binding(bound)}, func() error { return v.Revoke(bound) }},
		{change{what: audit.ChangeVaultLock}, func() error { return v.SetLocked(true) }},
		{change{what: audit.ChangeVaultUnlock}, func() error { return v.SetLocked(false) }},
		{change{what: audit.ChangeVaultPasswd, before: digest(vault.Identity)},
			func() error { return v.ChangePassphrase([]byte("another long passphrase")) }},
		{change{what: audit.ChangeConnectorRemove, about: aboutConnector(githubFQN, github.Version, github.Hash)},
			func() error {
				_, err := s.Remove(githubFQN, "", nil)
				return err
			}},
	}
}

// kill leaves a change as a process does that is killed: its file stays, and
// its lock goes.
func (p *pendingChange) kill(t *testing.T) {
	t.Helper()
	fatal(t, p.lock.Close())
}

func TestTheNextCommandRecordsTheOutcomeOfAKilledOne(t *testing.T) {
	o := withConnectors(t)
	o.ok("binding", "setup", githubFQN, "--identity", "work", "--secret-file", o.file("secret", testToken))
	a := &app{stderr: os.Stderr, home: o.home, getenv: os.Getenv, logLevel: "warn"}
	log, err := a.openLog(o.home)
	fatal(t, err)
	defer log.Close()
	for _, c := range o.changesOf() {
		if c.what == audit.ChangeVaultUnlock {
			fatal(t, vault.Open(filepath.Join(o.home, "vault"), cheapVaults()...).SetLocked(true))
		}
		for _, acted := range []bool{false, true} {
			p, err := beginChange(t.Context(), a, log, o.home, c.change)
			fatal(t, err)
			if acted {
				fatal(t, c.act())
			}
			p.kill(t)
			_, errs, code := o.run("session", "list")
			rows := o.rows()
			outcome := rows[len(rows)-1]
			event, reason, said := c.what.Failed(), reasonInterrupted, "was interrupted and did not take effect"
			if acted {
				event, reason, said = c.what.Done(), "", "was interrupted and took effect"
			}
			if outcome.Event != event || outcome.Reason != reason || outcome.Fields["interrupted"] != true ||
				outcome.Fields["request_id"] != p.Request || outcome.Binding != c.about.Binding ||
				outcome.ConnectorFQN != c.about.ConnectorFQN {
				t.Errorf("%s, acted %v: the outcome is %+v, want %s %q", c.what, acted, outcome, event, reason)
			}
			if code != 0 || !strings.Contains(errs, said) || len(o.pendingFiles()) != 0 {
				t.Errorf("%s, acted %v: exit %d, %q, left %q", c.what, acted, code, errs, o.pendingFiles())
			}
		}
	}
}

func TestAKilledCommandWithoutAnIntentLeavesNoRow(t *testing.T) {
	o := newOwner(t)
	a := &app{stderr: os.Stderr, home: o.home, getenv: os.Getenv, logLevel: "warn"}
	log, err := a.openLog(o.home)
	fatal(t, err)
	defer log.Close()
	p, err := beginChange(t.Context(), a, log, o.home, change{what: audit.ChangeVaultLock})
	fatal(t, err)
	whole, err := os.ReadFile(p.path)
	fatal(t, err)
	fatal(t, p.end(t.Context(), log, nil))
	before := len(o.rows())
	for name, raw := range map[string][]byte{
		"cut":           whole[:len(whole)/2],
		"empty":         nil,
		"no intent":     bytes.ReplaceAll(whole, []byte(p.Intent), []byte(audit.NewID())),
		"outcome there": whole,
	} {
		fatal(t, os.WriteFile(p.path, raw, 0o600))
		o.ok("session", "list")
		if now := o.rows(); len(now) != before || len(o.pendingFiles()) != 0 {
			t.Errorf("%s: %d rows, want %d; left %q", name, len(now), before, o.pendingFiles())
		}
	}
}

// A command that still runs settles its change itself.
func TestAChangeUnderWayIsLeftAlone(t *testing.T) {
	o := newOwner(t)
	a := &app{stderr: os.Stderr, home: o.home, getenv: os.Getenv, logLevel: "warn"}
	fatal(t, a.enact(t.Context(), change{what: audit.ChangeVaultLock}, func() error {
		_, errs, code := o.run("session", "list")
		if got := o.pendingFiles(); len(got) != 1 || len(o.rows()) != 1 || code != 0 || strings.Contains(errs,
			"interrupted") {
			t.Errorf("another command left %q and %q: exit %d, %q", got, o.events(), code, errs)
		}
		return nil
	}))
	if got := o.events(); len(got) != 2 || got[1] != audit.EventVaultLocked {
		t.Errorf("the log has %q", got)
	}
}
