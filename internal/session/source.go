package session

import (
	"context"

	"github.com/ALRubinger/aileron/internal/dirwatch"
	"github.com/ALRubinger/aileron/spec"
	"github.com/ALRubinger/aileron/vault"
)

// Grants is where a session gets its connectors and credentials from that uses neither the store nor the vault of its
// home. Its methods are safe for concurrent use. [Grants.All] reads all of it; what the others return is of that
// moment.
type Grants interface {
	// All returns the connectors, verified, and an error for each that cannot be used, as [store.Store.All] does.
	All() ([]*spec.Connector, []error)
	// Bindings, Credential and Digest are those of [vault.Vault].
	Bindings() ([]vault.Binding, error)
	Credential(name string) (vault.Credential, error)
	Digest(name string) (string, error)
	// Fingerprint returns a value that changes when All may return something else. The error means that this cannot be
	// known yet: the grants are then read again a moment later.
	Fingerprint() (string, error)
	// Dirs returns the directories in which a change is to be noticed.
	Dirs() []dirwatch.Dir
}

// Reload replaces what the session grants by what its store and vault, or its [Grants], have now. It must be called
// after [Session.Serve].
func (s *Session) Reload(ctx context.Context) { s.loader.reload(ctx) }

// credentials are those of a vault, or of a session's [Grants].
type credentials interface {
	Bindings() ([]vault.Binding, error)
	Credential(name string) (vault.Credential, error)
	Digest(name string) (string, error)
	Fingerprint() (string, error)
	Unlocked() bool
	LockedForAll() bool
	Lock()
}

// unlocked are credentials that nothing locks.
type unlocked struct{ Grants }

func (unlocked) Unlocked() bool     { return true }
func (unlocked) LockedForAll() bool { return false }
func (unlocked) Lock()              {}

// vault returns the credentials of the session.
func (l *loader) vault() credentials {
	if g := l.s.opts.Grants; g != nil {
		return unlocked{g}
	}
	return l.s.vault
}

// connectorSource is a store, or a session's [Grants].
type connectorSource interface {
	All() ([]*spec.Connector, []error)
	Fingerprint() (string, error)
}

// store returns the connectors of the session.
func (l *loader) store() connectorSource {
	if g := l.s.opts.Grants; g != nil {
		return g
	}
	return l.s.store
}
