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

// keyringService is the name under which the OS keyring holds passphrases;
// the account is the home that the vault stands in.
const keyringService = "aileron"

// keyringWait bounds a keyring that asks a person who is not there.
const keyringWait = 2 * time.Second

// ErrNoKeyring is a host without a keyring, or one that does not answer.
var ErrNoKeyring = errors.New("this host has no OS keyring that answers")

// FromKeyring gives the passphrase that the OS keyring holds for the vault of
// home, nil when there is none, no keyring, or no answer in time.
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

// ToKeyring keeps the passphrase in the OS keyring, over one that is there.
func ToKeyring(home string, passphrase []byte) error {
	return bounded(func() error { return keyring.Set(keyringService, home, string(passphrase)) })
}

// ForgetKeyring removes the passphrase from the OS keyring. It is no error
// when it was not there.
func ForgetKeyring(home string) error {
	err := bounded(func() error { return keyring.Delete(keyringService, home) })
	if errors.Is(err, keyring.ErrNotFound) || errors.Is(err, ErrNoKeyring) {
		return nil
	}
	return err
}

// bounded runs f where there is a keyring, and stops waiting for it in time.
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

// keyringThere reports whether asking makes sense. godbus: without a session
// bus it would run dbus-launch, which leaves a daemon behind.
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
