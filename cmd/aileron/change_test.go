package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/e2e/must"
)

// rows returns the log as it is on disk: no command settles anything before.
func (o owner) rows() []audit.Row {
	o.t.Helper()
	log := must.Get(audit.OpenReader(filepath.Join(o.Flag, "audit.db")))(o.t)
	defer log.Close()
	rows := must.Get(log.List(o.t.Context(), audit.Filter{}))(o.t)
	return rows
}

func (o owner) events() (list []audit.Event) {
	o.t.Helper()
	for _, r := range o.rows() {
		list = append(list, r.Event)
	}
	return list
}

// pendingFiles are the changes without an outcome.
func (o owner) pendingFiles() []string {
	list, _ := filepath.Glob(filepath.Join(o.Flag, "changes", "*"))
	return list
}

func TestEveryChangeHasAnIntentAndAnOutcome(t *testing.T) {
	o := newOwner(t)
	secret, next := o.file("secret", testToken), o.file("next", "ghp_ABCDEF0123456789abcdef+/=tok")
	fresh := o.file("fresh", "another long passphrase")
	o.ok("connector", "install", exampleGitHub, "--yes")
	o.ok("binding", "setup", githubFQN, "--identity", "work", "--secret-file", secret)
	o.ok("binding", "rebind", githubBinding+"work", "--secret-file", next)
	o.ok("vault", "lock")
	o.ok("vault", "unlock")
	o.ok("vault", "passwd", "--new-passphrase-file", fresh)
	o.ok("binding", "revoke", githubBinding+"work", "--yes")
	o.ok("connector", "remove", githubFQN)
	o.ok("connector", "install", exampleGitHub, "--yes")
	o.ok("connector", "install", exampleGitHub, "--yes") // it is there: no change

	want := []audit.Change{
		audit.ChangeConnectorInstall, audit.ChangeVaultInit, audit.ChangeBindingSetup, audit.ChangeBindingRebind,
		audit.ChangeVaultLock, audit.ChangeVaultUnlock, audit.ChangeVaultPasswd, audit.ChangeBindingRevoke,
		audit.ChangeConnectorRemove, audit.ChangeConnectorInstall,
	}
	rows := o.rows()
	if len(rows) != 2*len(want) {
		t.Fatalf("the log has %q, want two rows for each of %q", o.events(), want)
	}
	for i, what := range want {
		intent, outcome := rows[2*i], rows[2*i+1]
		if intent.Event != what.Started() || outcome.Event != what.Done() || outcome.Source != audit.SourceCLI ||
			intent.Fields["request_id"] == nil || intent.Fields["request_id"] != outcome.Fields["request_id"] ||
			intent.Binding != outcome.Binding || intent.ConnectorFQN != outcome.ConnectorFQN ||
			intent.Fields["hash"] != outcome.Fields["hash"] {
			t.Errorf("%s has the rows\n%+v\n%+v", what, intent, outcome)
		}
		if strings.HasPrefix(string(what), "connector.") && (intent.ConnectorFQN != githubFQN ||
			intent.Fields["hash"] == nil) ||
			strings.HasPrefix(string(what), "binding.") && intent.Binding != githubBinding+"work" {
			t.Errorf("the intent of %s does not name what it changes: %+v", what, intent)
		}
	}
	if left := o.pendingFiles(); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}

func TestWhatCannotBeRecordedIsNotDone(t *testing.T) {
	o := withConnectors(t)
	secret := o.file("secret", testToken)
	o.ok("binding", "setup", githubFQN, "--identity", "work", "--secret-file", secret)
	before := o.inForce()
	must.Do(t, os.Rename(filepath.Join(o.Flag, "audit.db"), filepath.Join(o.Flag, "away.db")))
	must.Do(t, os.Mkdir(filepath.Join(o.Flag, "audit.db"), 0o700))
	for _, args := range [][]string{
		{"connector", "install", filepath.Join(exampleGitHub, "..", "anthropic"), "--yes"},
		{"connector", "remove", githubFQN},
		{"binding", "setup", githubFQN, "--identity", "home", "--secret-file", secret},
		{"binding", "rebind", githubBinding + "work", "--secret-file", o.file("next", testToken+"2")},
		{"binding", "revoke", githubBinding + "work", "--yes"},
		{"vault", "lock"},
		{"vault", "unlock"},
		{"vault", "passwd", "--new-passphrase-file", o.file("fresh", "another long passphrase")},
	} {
		_, errs, code := o.run(append(args, "--json")...)
		if code != 1 || !strings.Contains(errs, `"reason":"audit_unavailable"`) || !strings.Contains(errs,
			"was not done, because it could not be recorded") {
			t.Errorf("%q ends with %d: %s", args, code, errs)
		}
		if now := o.inForce(); now != before {
			t.Fatalf("%q changed what is in force:\n%s\n%s", args, before, now)
		}
	}
	empty := newOwner(t)
	must.Do(t, os.Mkdir(filepath.Join(empty.Flag, "audit.db"), 0o700))
	empty.fails("vault.init was not done", "vault", "init")
	if _, err := os.Stat(filepath.Join(empty.Flag, "vault")); err == nil {
		t.Error("the vault was made")
	}
}

// inForce is what the store and the vault hold, byte for byte.
func (o owner) inForce() string {
	o.t.Helper()
	var all strings.Builder
	for _, dir := range []string{"store/connectors", "vault"} {
		must.Do(o.t, filepath.WalkDir(filepath.Join(o.Flag, dir), func(path string, d os.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			data, err := os.ReadFile(path)
			all.WriteString(path + " " + string(data) + "\n")
			return err
		}))
	}
	return all.String()
}
