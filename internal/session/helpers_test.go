package session

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/e2e/rowschema"
	"github.com/ALRubinger/aileron/spec"
	"github.com/ALRubinger/aileron/spec/store"
	"github.com/ALRubinger/aileron/vault"
)

const (
	exampleGitHub  = "../../examples/connectors/github"
	githubFQN      = spec.FQN("github://alrubinger/aileron-connector-github")
	testPassphrase = "correct horse battery"
	testToken      = "ghp_0123456789abcdefABCDEF+/=tok"
)

// newOptions returns options for a home of the test's own, with a vault that is
// cheap to open.
func newOptions(t *testing.T) Options {
	t.Helper()
	home := t.TempDir()
	open := func() *vault.Vault { return vault.Open(filepath.Join(home, "vault"), vault.TestOnlyWorkFactor(10)) }
	return Options{Home: home, Agent: "curl", Mode: "proxy", Vault: open(),
		Unlock: func(context.Context) (*vault.Vault, error) {
			v := open()
			return v, v.Unlock([]byte(testPassphrase))
		}}
}

// logTo makes the session log to a buffer.
func (o *Options) logTo(b *bytes.Buffer) { o.Log = slog.New(slog.NewTextHandler(b, nil)) }

// install installs the connector for GitHub.
func install(t *testing.T, home string) {
	t.Helper()
	s := must.Get(store.Open(filepath.Join(home, "store")))(t)
	must.Get(s.Install(t.Context(), exampleGitHub, store.InstallOptions{}))(t)
}

// bind binds a credential for GitHub to identities, in a vault that it creates.
func bind(t *testing.T, o Options, identities ...string) {
	t.Helper()
	if !o.Vault.Initialised() {
		must.Do(t, o.Vault.Init([]byte(testPassphrase)))
	}
	for _, identity := range identities {
		name := must.Get(o.Vault.BindingName("bearer", string(githubFQN), identity))(t)
		secret := must.Get(vault.NewSecret([]byte(testToken)))(t)
		b := vault.Binding{Name: name, Kind: "bearer", Connector: string(githubFQN), Identity: identity}
		must.Do(t, o.Vault.Bind(b, secret))
	}
	o.Vault.Lock()
}

// open opens a session, and abandons it when the test ends if it is still open.
func open(t *testing.T, o Options) *Session {
	t.Helper()
	s := must.Get(Open(t.Context(), o))(t)
	t.Cleanup(func() {
		if Alive(o.Home, s.ID()) {
			s.Abandon(context.Background())
		}
	})
	return s
}

// openStill opens a session that serves and watches nothing: the test reloads its grants.
func openStill(t *testing.T, o Options) *Session {
	t.Helper()
	s := open(t, o)
	must.Do(t, s.Serve(t.Context(), false))
	s.stop()
	s.serving.Wait()
	return s
}

// rows returns the rows of a home's log but those with signed heads.
func rows(t *testing.T, home string) []audit.Row {
	t.Helper()
	log := must.Get(audit.OpenReader(filepath.Join(home, "audit.db")))(t)
	defer log.Close()
	list := must.Get(log.List(t.Context(), audit.Filter{}))(t)
	rowschema.Log(t, log)
	return slices.DeleteFunc(list, func(r audit.Row) bool { return r.Event == audit.EventCheckpoint })
}

// events returns the events of a home's log.
func events(t *testing.T, home string) (names []audit.Event) {
	t.Helper()
	for _, r := range rows(t, home) {
		names = append(names, r.Event)
	}
	return names
}

// left returns the names of the directories of sessions.
func left(t *testing.T, home string) (names []string) {
	t.Helper()
	entries := must.Get(os.ReadDir(sessionsDir(home)))(t)
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func checkEvents(t *testing.T, home string, want ...audit.Event) {
	t.Helper()
	if got := events(t, home); !slices.Equal(got, want) {
		t.Errorf("the log has the events %q, want %q", got, want)
	}
}
