package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"github.com/ALRubinger/aileron/internal/format"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/proxy"
	"github.com/ALRubinger/aileron/spec"
	"github.com/ALRubinger/aileron/spec/store"
	"github.com/ALRubinger/aileron/vault"
)

// unreadGrants is what a session could not read of its grants. It is not known
// whether that was changed, so it is neither used nor forgotten.
type unreadGrants struct {
	connectors map[spec.FQN]proxy.Reason // with their reasons
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
	if !errors.As(err, new(*vault.UnreadableError)) && !errors.As(err, new(*format.Error)) {
		return false
	}
	u.vault = true
	u.add(err)
	return true
}

// isUnread reports whether a fault of the store is one of reading, and its
// reason.
func isUnread(fault error) (reason proxy.Reason, unread bool) {
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

// homeMissing returns an error when the home is not the directory any more that
// it was at the session's start: it was moved away, or unmounted.
func (s *session) homeMissing() error {
	now, err := os.Stat(s.home)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s is not there: it was moved or unmounted", s.home)
	case err == nil && s.place != nil && !os.SameFile(now, s.place):
		return fmt.Errorf("%s is another directory now: it was replaced or unmounted", s.home)
	}
	return nil // what else is wrong with it shows where it is read
}

// withhold denies every operation of a connector while the home is missing.
func (g *granter) withhold(missing error) {
	g.complain("the home is missing; requests that need a connector are refused until it is back", missing)
	if g.complained[missing.Error()] {
		return
	}
	g.unread = &unreadGrants{connectors: map[spec.FQN]proxy.Reason{}}
	for _, c := range g.connectors {
		g.unread.connectors[c.FQN] = proxy.ReasonHomeMissing
	}
	if grants, err := g.grants(g.connectors, nil); err == nil {
		g.s.plane.SetGrants(grants)
	}
}

// missed counts a load that could not read everything, and reports whether it
// is the first one: that may be a moment without descriptors.
func (g *granter) missed() bool {
	g.misses++
	if g.misses == 1 {
		g.print = ""
		return true
	}
	g.complain("what this session may do could not be read; requests that need it are refused until it can", g.unread.cause)
	return false
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
			return hint.New(err, "install the connector again from its source, or remove it with: aileron connector remove FQN")
		}
	}
	mend := first(systemHint(err), "check the disk and the rights on the home")
	return hint.New(err, "nothing is known to be changed: %s", mend)
}
