package vault_test

import (
	"errors"
	"net"
	"runtime"
	"testing"

	"github.com/zalando/go-keyring"

	"github.com/ALRubinger/aileron/vault"
)

func TestKeyringKeepsThePassphrase(t *testing.T) {
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nonexistent")
	keyring.MockInit()
	empty := func(home string) {
		t.Helper()
		if got, err := vault.FromKeyring(home); got != nil || !errors.Is(err, vault.ErrKeyringEmpty) {
			t.Errorf("%s gets %q, %v", home, got, err)
		}
	}
	empty("/home/a")
	for _, p := range []string{"the first one", "the second one"} {
		if err := vault.ToKeyring("/home/a", []byte(p)); err != nil {
			t.Errorf("storing: %v", err)
		}
		if got, err := vault.FromKeyring("/home/a"); err != nil || string(got) != p {
			t.Errorf("it keeps %q, %v", got, err)
		}
	}
	empty("/home/b")
	for range 2 {
		if err := vault.ForgetKeyring("/home/a"); err != nil {
			t.Errorf("it is not forgotten: %v", err)
		}
		empty("/home/a")
	}
}

// SECURITY VLT-10: a host without a keyring is nothing out of the ordinary.
func TestNoKeyringIsNoObstacle(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux may have none")
	}
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", "")
	if got, err := vault.FromKeyring("/home/a"); got != nil || !errors.Is(err, vault.ErrNoKeyring) {
		t.Errorf("without one it gives %q, %v", got, err)
	}
	if err := vault.ToKeyring("/home/a", []byte(passphrase)); !errors.Is(err, vault.ErrNoKeyring) {
		t.Errorf("keeping gives %v", err)
	}
	if err := vault.ForgetKeyring("/home/a"); err != nil {
		t.Errorf("forgetting gives %v", err)
	}
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nonexistent") // the session bus is gone
	keyring.MockInitWithError(&net.OpError{Op: "dial", Err: errors.New("no bus")})
	if got, err := vault.FromKeyring("/home/a"); got != nil || !errors.Is(err, vault.ErrNoKeyring) {
		t.Errorf("without a bus it gives %q, %v", got, err)
	}
	// One that refuses may hold the passphrase: that it is not forgotten is an error.
	keyring.MockInitWithError(errors.New("denied"))
	if got, err := vault.FromKeyring("/home/a"); got != nil || err == nil || errors.Is(err, vault.ErrNoKeyring) {
		t.Errorf("a keyring that refuses gives %q, %v", got, err)
	}
	if err := vault.ForgetKeyring("/home/a"); err == nil {
		t.Error("a keyring that refuses has forgotten")
	}
}
