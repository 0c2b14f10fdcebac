package vault_test

import (
	"errors"
	"runtime"
	"testing"

	"github.com/zalando/go-keyring"

	"github.com/ALRubinger/aileron/vault"
)

func TestKeyringKeepsThePassphrase(t *testing.T) {
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nonexistent")
	keyring.MockInit()
	if got := vault.FromKeyring("/home/a"); got != nil {
		t.Errorf("an empty keyring gives %q", got)
	}
	for _, p := range []string{"the first one", "the second one"} {
		if err := vault.ToKeyring("/home/a", []byte(p)); err != nil || string(vault.FromKeyring("/home/a")) != p {
			t.Errorf("it keeps %q, %v", vault.FromKeyring("/home/a"), err)
		}
	}
	if got := vault.FromKeyring("/home/b"); got != nil {
		t.Errorf("another home gets %q", got)
	}
	for range 2 {
		if err := vault.ForgetKeyring("/home/a"); err != nil || vault.FromKeyring("/home/a") != nil {
			t.Errorf("it is not forgotten: %v", err)
		}
	}
}

// SECURITY VLT-10: a host without a keyring is nothing out of the ordinary.
func TestNoKeyringIsNoObstacle(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux may have none")
	}
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", "")
	if got := vault.FromKeyring("/home/a"); got != nil {
		t.Errorf("it gives %q", got)
	}
	if err := vault.ToKeyring("/home/a", []byte(passphrase)); !errors.Is(err, vault.ErrNoKeyring) {
		t.Errorf("keeping gives %v", err)
	}
	if err := vault.ForgetKeyring("/home/a"); err != nil {
		t.Errorf("forgetting gives %v", err)
	}
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nonexistent") // the session bus is gone
	keyring.MockInitWithError(errors.New("no bus"))
	if got := vault.FromKeyring("/home/a"); got != nil {
		t.Errorf("a broken one gives %q", got)
	}
}
