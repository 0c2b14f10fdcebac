package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/internal/changes"
	"github.com/ALRubinger/aileron/internal/connectors"
	"github.com/ALRubinger/aileron/internal/console"
	"github.com/ALRubinger/aileron/internal/home"
	"github.com/ALRubinger/aileron/spec/store"
	"github.com/ALRubinger/aileron/vault"
)

// interruptedChange is one change, with the act that a killed command may or
// may not have reached.
type interruptedChange struct {
	changes.Change
	act func() error
}

// changesOf returns each change that commands make, at the home of o, which
// has the GitHub connector and its binding.
func (o owner) changesOf() []interruptedChange {
	o.t.Helper()
	s := must.Get(store.Open(filepath.Join(o.Flag, "store")))(o.t)
	anthropic := filepath.Join(exampleGitHub, "..", "anthropic")
	github := must.Get(store.Read(exampleGitHub))(o.t)
	other := must.Get(store.Read(anthropic))(o.t)
	v := vault.Open(filepath.Join(o.Flag, "vault"), cheapVaults()...)
	must.Do(o.t, v.Unlock([]byte(testPassphrase)))
	secret, err := vault.NewSecret([]byte(testToken + "2"))
	must.Do(o.t, err)
	bound, fresh := githubBinding+"work", githubBinding+"home"
	digest := func(name string) string {
		d := must.Get(v.Digest(name))(o.t)
		return d
	}
	binding := func(name string) audit.Row { return audit.Row{ConnectorFQN: githubFQN, Binding: name} }
	return []interruptedChange{
		{changes.Change{What: audit.ChangeConnectorInstall, About: connectors.AboutConnector(string(other.FQN), other.Version,
			other.Hash)},
			func() error {
				_, err := s.Install(o.t.Context(), anthropic, store.InstallOptions{})
				return err
			}},
		{changes.Change{What: audit.ChangeBindingSetup, About: binding(fresh)}, func() error {
			return v.Bind(vault.Binding{Name: fresh, Kind: "bearer", Connector: githubFQN, Identity: "home"}, secret)
		}},
		{changes.Change{What: audit.ChangeBindingRebind, About: binding(bound), Before: digest(bound)},
			func() error { return v.Rebind(bound, "", secret) }},
		{changes.Change{What: audit.ChangeBindingRevoke, About: binding(bound)}, func() error { return v.Revoke(bound) }},
		{changes.Change{What: audit.ChangeVaultLock}, func() error { return v.SetLocked(true) }},
		{changes.Change{What: audit.ChangeVaultUnlock}, func() error { return v.SetLocked(false) }},
		{changes.Change{What: audit.ChangeVaultPasswd, Before: digest(vault.Identity)},
			func() error { return v.ChangePassphrase([]byte("another long passphrase")) }},
		{changes.Change{What: audit.ChangeConnectorRemove, About: connectors.AboutConnector(githubFQN, github.Version,
			github.Hash)},
			func() error {
				_, err := s.Remove(githubFQN, "", nil)
				return err
			}},
	}
}

// kill leaves a change as a process does that is killed: its file stays, and
// its lock goes.
func kill(t *testing.T, p *changes.PendingChange) {
	t.Helper()
	must.Do(t, p.Lock.Close())
}

func TestTheNextCommandRecordsTheOutcomeOfAKilledOne(t *testing.T) {
	o := withConnectors(t)
	o.ok("binding", "setup", githubFQN, "--identity", "work", "--secret-file", o.file("secret", testToken))
	a := cli.New(&console.Console{Stderr: os.Stderr}, &home.Dir{Flag: o.Flag, Environ: os.Getenv})
	log := must.Get(a.OpenLog(o.Flag))(t)
	defer log.Close()
	for _, c := range o.changesOf() {
		if c.What == audit.ChangeVaultUnlock {
			must.Do(t, vault.Open(filepath.Join(o.Flag, "vault"), cheapVaults()...).SetLocked(true))
		}
		for _, acted := range []bool{false, true} {
			p := must.Get(changes.BeginChange(t.Context(), a.Locks, log, o.Flag, c.Change))(t)
			if acted {
				must.Do(t, c.act())
			}
			kill(t, p)
			_, errs, code := o.run("session", "list")
			rows := o.rows()
			outcome := rows[len(rows)-1]
			event, reason, said := c.What.Failed(), changes.ReasonInterrupted, "was interrupted and did not take effect"
			if acted {
				event, reason, said = c.What.Done(), "", "was interrupted and took effect"
			}
			if outcome.Event != event || outcome.Reason != reason || outcome.Fields["interrupted"] != true ||
				outcome.Fields["request_id"] != p.Request || outcome.Binding != c.About.Binding ||
				outcome.ConnectorFQN != c.About.ConnectorFQN {
				t.Errorf("%s, acted %v: the outcome is %+v, want %s %q", c.What, acted, outcome, event, reason)
			}
			if code != 0 || !strings.Contains(errs, said) || len(o.pendingFiles()) != 0 {
				t.Errorf("%s, acted %v: exit %d, %q, left %q", c.What, acted, code, errs, o.pendingFiles())
			}
		}
	}
}
