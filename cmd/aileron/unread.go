package main

import (
	"errors"
	"slices"

	"github.com/ALRubinger/aileron/proxy"
	"github.com/ALRubinger/aileron/spec"
	"github.com/ALRubinger/aileron/spec/store"
	"github.com/ALRubinger/aileron/vault"
)

// unreadGrants is what a session could not read of its grants. It is not known
// whether that was changed, so it is neither used nor forgotten.
type unreadGrants struct {
	connectors map[spec.FQN]string // with their reasons
	vault      bool
	cause      error // the first one
}

func (u *unreadGrants) any() bool { return u.vault || len(u.connectors) > 0 }

func (u *unreadGrants) add(err error) {
	if u.cause == nil {
		u.cause = err
	}
}

// noteVault reports whether err is a vault that could not be read, and takes
// it down.
func (u *unreadGrants) noteVault(err error) bool {
	if !errors.As(err, new(*vault.UnreadableError)) {
		return false
	}
	u.vault = true
	u.add(err)
	return true
}

// isUnread reports whether a fault of the store is one of reading, and its
// reason.
func isUnread(fault error) (reason string, unread bool) {
	var entry *store.UnreadableError
	var all *store.StoreError
	switch {
	case errors.As(fault, &entry):
		return proxy.ReasonConnectorUnreadable, true
	case errors.As(fault, &all):
		return proxy.ReasonStoreUnreadable, true
	}
	return "", false
}

// keepUnread returns connectors with those of before that could not be read
// again in their places, and takes down which they are.
func (u *unreadGrants) keepUnread(connectors, before []*spec.Connector, faults []error) []*spec.Connector {
	for _, fault := range faults {
		reason, unread := isUnread(fault)
		if !unread {
			continue
		}
		u.add(fault)
		var entry *store.EntryError
		for _, c := range before {
			one := errors.As(fault, &entry)
			if one && entry.Entry.Hash != c.Hash && entry.Entry.FQN != c.FQN {
				continue
			}
			connectors = slices.DeleteFunc(connectors, func(o *spec.Connector) bool { return o.FQN == c.FQN })
			connectors = append(connectors, c)
			u.connectors[c.FQN] = reason
		}
	}
	return connectors
}

// storeHint adds what to do about installed connectors that cannot be used.
func storeHint(err error) error {
	var failed []error
	if joined, ok := errors.Unwrap(err).(interface{ Unwrap() []error }); ok {
		failed = joined.Unwrap()
	} else {
		failed = []error{err}
	}
	for _, e := range failed {
		if _, unread := isUnread(e); !unread && e != nil {
			return hint(err, "install the connector again from its source, or remove it with: aileron connector remove FQN")
		}
	}
	mend := first(systemHint(err), "check the disk and the rights on the home")
	return hint(err, "nothing is known to be changed: %s", mend)
}
