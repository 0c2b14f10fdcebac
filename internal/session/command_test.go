package session

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/vault"
	"github.com/ALRubinger/aileron/vault/command"
)

// A binding may have a command in the place of a secret. It runs when the session has begun, and what it prints is
// used and redacted; what is sealed in the place of the secret is not used.
func TestACommandPrintsTheSecretOfABinding(t *testing.T) {
	o := newOptions(t)
	install(t, o.Home)
	must.Do(t, o.Vault.Init([]byte(testPassphrase)))
	file := filepath.Join(t.TempDir(), "token")
	must.Do(t, os.WriteFile(file, []byte(testToken), 0o600))
	name := must.Get(o.Vault.BindingName("bearer", string(githubFQN), "work"))(t)
	c := must.Get(command.Command{"/bin/cat", file}.Credential())(t)
	must.Do(t, o.Vault.BindLogin(vault.Binding{Name: name, Kind: "bearer", Connector: string(githubFQN), Identity: "work",
		Renewal: command.Renewal}, c))
	o.Vault.Lock()
	s := open(t, o)
	if bound := s.plane.Grants().Bound[githubFQN]; bound.Login == nil || !bound.Credential.Secret.IsZero() {
		t.Errorf("before the command has run the binding is %+v", bound)
	}
	must.Do(t, s.Serve(t.Context(), true))
	must.Do(t, s.plane.Grants().Bound[githubFQN].Login.Fresh(t.Context(), vault.Secret{}))
	if got := s.plane.Grants().Bound[githubFQN].Credential.Secret.Reveal(); got != testToken {
		t.Errorf("the secret is %q", got)
	}
	if text, n := s.loader.redacts.Load().Text("you sent " + testToken); n != 1 {
		t.Errorf("a response is %q", text)
	}
	must.Do(t, s.Close(t.Context(), 0, "the command ended"))
	want := []audit.Event{audit.EventSessionStarted, audit.EventBindingRefreshStarted, audit.EventBindingRefreshed,
		audit.EventSessionEnded}
	if got := events(t, o.Home); !slices.Equal(got, want) {
		t.Errorf("the events are %q, want %q", got, want)
	}
}
