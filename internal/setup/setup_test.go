package setup

import (
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/internal/bindings"
	"github.com/ALRubinger/aileron/internal/changes"
	"github.com/ALRubinger/aileron/internal/console"
	"github.com/ALRubinger/aileron/internal/home"
	"github.com/ALRubinger/aileron/internal/unlock"
	"github.com/ALRubinger/aileron/vault"
)

// The vault's passphrase is made up and kept in the keyring before there is a vault that nothing else opens.
func TestAVaultWhosePassphraseIsNotKeptIsNotMade(t *testing.T) {
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nonexistent")
	d := &home.Dir{Flag: t.TempDir(), VaultOptions: []vault.Option{vault.TestOnlyWorkFactor(10)}}
	u := &unlock.Unlocker{Console: &console.Console{Stderr: t.Output()}, Dir: d, Recorder: changes.Recorder{Dir: d}}
	s := &setup{u: u, options: &Options{}, vault: d.VaultAt(d.Flag), keyring: true, bindings: make([]bindings.Target, 1)}
	if err := s.makeVault(t.Context()); err == nil || !strings.Contains(err.Error(), "keyring") {
		t.Errorf("without a keyring it returns %v", err)
	}
	if s.vault.Initialised() {
		t.Error("it made a vault that cannot be opened")
	}
}

// A key is refused with the name of what it looks like, and no byte of it.
func TestTheDoubtAboutAKeyHasNoByteOfIt(t *testing.T) {
	for key, want := range map[string]string{
		"sk-or-v1-0123456789": "does not begin with sk-ant-, as every Anthropic API key does, " +
			"but like the OpenRouter API key",
		"ghp_0123456789":    "does not begin with sk-ant-, as every Anthropic API key does, but like the GitHub token",
		"0123456789":        "does not begin with sk-ant-, as every Anthropic API key does",
		"sk-ant-0123456789": "",
	} {
		if got := keyFormOf("anthropic").doubt(key); got != want {
			t.Errorf("%s: the doubt is %q, want %q", key, got, want)
		}
	}
}
