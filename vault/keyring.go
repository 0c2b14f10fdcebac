package vault

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/godbus/dbus/v5"
	"github.com/zalando/go-keyring"
)

// keyringService is the service of passphrases in the OS keyring. The account is the
// home of the vault.
const keyringService = "aileron"

// keyringTimeout bounds the wait for a keyring, which may prompt an absent person.
const keyringTimeout = 2 * time.Second

var keyringWait = keyringTimeout

// TestOnlyKeyringWait changes how long keyrings are waited for: on a busy machine, one
// that responds may need more time than a person should wait for one that does not.
func TestOnlyKeyringWait(d time.Duration) { keyringWait = d }

// The errors of a keyring that has no passphrase for a vault. Any other one is of a
// keyring that is locked, or refuses.
var (
	ErrNoKeyring      = errors.New("this host has no OS keyring")
	ErrKeyringEmpty   = errors.New("the OS keyring does not hold the passphrase of this vault")
	ErrKeyringTimeout = fmt.Errorf("the OS keyring does not respond within %v; it may be waiting for its own password",
		keyringTimeout)
)

// FromKeyring returns the passphrase in the OS keyring for the vault of home. It
// waits for the keyring no longer than two seconds.
func FromKeyring(home string) ([]byte, error) {
	found := make(chan string, 1)
	err := bounded(func() error {
		p, err := keyring.Get(keyringService, home)
		found <- p
		return err
	})
	switch {
	case errors.Is(err, keyring.ErrNotFound):
		return nil, ErrKeyringEmpty
	case err != nil:
		return nil, err
	}
	return []byte(<-found), nil
}

// ToKeyring stores the passphrase in the OS keyring and replaces an older one.
func ToKeyring(home string, passphrase []byte) error {
	return bounded(func() error { return keyring.Set(keyringService, home, string(passphrase)) })
}

// ForgetKeyring removes the passphrase from the OS keyring. It is not an error if
// there is none.
func ForgetKeyring(home string) error {
	err := bounded(func() error { return keyring.Delete(keyringService, home) })
	if errors.Is(err, keyring.ErrNotFound) || errors.Is(err, ErrNoKeyring) {
		return nil
	}
	return err
}

// bounded runs f if there is a keyring, and waits for it no longer than keyringWait.
func bounded(f func() error) error {
	if !keyringThere() {
		return ErrNoKeyring
	}
	done := make(chan error, 1)
	go func() { done <- f() }()
	select {
	case err := <-done:
		if err == nil || errors.Is(err, keyring.ErrNotFound) {
			return err
		}
		return keyringError(err)
	case <-time.After(keyringWait):
		return ErrKeyringTimeout
	}
}

// keyringError returns the error of a keyring in words for a person.
func keyringError(err error) error {
	var dial *net.OpError
	var bus dbus.Error
	switch {
	case errors.Is(err, keyring.ErrUnsupportedPlatform), errors.As(err, &dial):
		return ErrNoKeyring
	case errors.As(err, &bus) && bus.Name == "org.freedesktop.DBus.Error.ServiceUnknown":
		return ErrNoKeyring // a session bus, and no keyring on it
	case strings.Contains(err.Error(), "failed to unlock"): // go-keyring has no type for it
		return errors.New("the OS keyring is locked, and was not unlocked")
	}
	return fmt.Errorf("the OS keyring refuses: %w", err)
}

// keyringThere reports whether there may be a keyring. Without a session bus, godbus
// would run dbus-launch, which leaves a daemon behind.
func keyringThere() bool {
	if runtime.GOOS == "darwin" || runtime.GOOS == "windows" || os.Getenv("DBUS_SESSION_BUS_ADDRESS") != "" {
		return true
	}
	run := os.Getenv("XDG_RUNTIME_DIR")
	if run == "" {
		run = filepath.Join("/run/user", strconv.Itoa(os.Getuid()))
	}
	for _, name := range []string{"bus", "dbus-session"} {
		if _, err := os.Stat(filepath.Join(run, name)); err == nil {
			return true
		}
	}
	return false
}
