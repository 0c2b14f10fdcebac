package vault

import (
	"errors"
	"time"

	"github.com/zalando/go-keyring"
)

const keyringService = "aileron"

// keyringWait bounds a keyring that asks a person who is not there.
const keyringWait = 2 * time.Second

// errNoKeyring is a host without a keyring that answers.
var errNoKeyring = errors.New("the OS keyring does not answer")

// FromKeyring gives the passphrase that the OS keyring holds for the vault of
// home, nil when there is none or no keyring.
func FromKeyring(home string) []byte {
	var found string
	err := bounded(func() (err error) {
		found, err = keyring.Get(keyringService, home)
		return err
	})
	if err != nil {
		return nil
	}
	return []byte(found)
}

// ToKeyring keeps the passphrase in the OS keyring.
func ToKeyring(home string, passphrase []byte) error {
	return bounded(func() error { return keyring.Set(keyringService, home, string(passphrase)) })
}

// bounded runs f, and stops waiting for it in time.
func bounded(f func() error) error {
	done := make(chan error, 1)
	go func() { done <- f() }()
	select {
	case err := <-done:
		return err
	case <-time.After(keyringWait):
		return errNoKeyring
	}
}
