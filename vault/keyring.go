package vault

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"time"

	"github.com/zalando/go-keyring"
)

// keyringService is the service of passphrases in the OS keyring. The account is the
// home of the vault.
const keyringService = "aileron"

// keyringWait bounds the wait for a keyring, which may prompt an absent person.
const keyringWait = 2 * time.Second

// ErrNoKeyring is returned on a host without a keyring, or if it does not respond.
var ErrNoKeyring = errors.New("this host has no OS keyring that responds")

// FromKeyring returns the passphrase in the OS keyring for the vault of home. It
// returns nil if there is none, no keyring, or no response in time.
func FromKeyring(home string) []byte {
	found := make(chan string, 1)
	err := bounded(func() error {
		p, err := keyring.Get(keyringService, home)
		found <- p
		return err
	})
	if err != nil {
		return nil
	}
	return []byte(<-found)
}

// HasKeyring reports whether there is an OS keyring that responds to the user of home.
func HasKeyring(home string) bool {
	err := bounded(func() error {
		_, err := keyring.Get(keyringService, home)
		return err
	})
	return err == nil || errors.Is(err, keyring.ErrNotFound)
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
		if errors.Is(err, keyring.ErrUnsupportedPlatform) {
			return ErrNoKeyring
		}
		return err
	case <-time.After(keyringWait):
		return fmt.Errorf("%w within %s", ErrNoKeyring, keyringWait)
	}
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
