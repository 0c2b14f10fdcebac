package session

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"github.com/ALRubinger/aileron/internal/format"
	"github.com/ALRubinger/aileron/proxy"
	"github.com/ALRubinger/aileron/spec"
	"github.com/ALRubinger/aileron/spec/store"
	"github.com/ALRubinger/aileron/vault"
)

// unreadGrants is what a load could not read. Whether that was changed is not
// known, so the session neither uses it nor forgets it: requests that need it
// are denied until it can be read.
type unreadGrants struct {
	connectors map[spec.FQN]proxy.Reason
	vault      bool
	cause      error // the first one
}

func newUnreadGrants() *unreadGrants {
	return &unreadGrants{connectors: map[spec.FQN]proxy.Reason{}}
}

// any reports whether something could not be read.
func (u *unreadGrants) any() bool { return u.vault || len(u.connectors) > 0 }

// addVault adds err if it is about a vault that could not be read, and reports
// whether it is.
func (u *unreadGrants) addVault(err error) bool {
	if !errors.As(err, new(*vault.UnreadableError)) && !errors.As(err, new(*format.Error)) {
		return false
	}
	u.vault = true
	u.addCause(err)
	return true
}

func (u *unreadGrants) addCause(err error) {
	if u.cause == nil {
		u.cause = err
	}
}

// keep returns connectors with those of before that could not be read again in
// their places, which it adds. faults are the errors of the load that returned
// connectors.
func (u *unreadGrants) keep(connectors, before []*spec.Connector, faults []error) []*spec.Connector {
	for _, fault := range faults {
		reason, unread := store.Unreadable(fault)
		if !unread {
			continue
		}
		u.addCause(fault)
		var one *store.EntryError
		all := !errors.As(fault, &one) // the fault is one of the store
		for _, c := range before {
			if all || one.Entry.Hash == c.Hash || one.Entry.FQN == c.FQN {
				connectors = slices.DeleteFunc(connectors, func(o *spec.Connector) bool { return o.FQN == c.FQN })
				connectors = append(connectors, c)
				u.connectors[c.FQN] = proxy.Reason(reason)
			}
		}
	}
	return connectors
}

// waitsForRead reports whether the load under way is the first in a row that
// could not read everything. That may be a moment without descriptors, and the
// next tick is soon enough for a revocation, so the plane keeps its grants.
func (l *loader) waitsForRead() bool {
	if !l.unread.any() {
		l.unreadLoads = 0
		return false
	}
	if l.unreadLoads++; l.unreadLoads == 1 {
		l.fingerprint = ""
		return true
	}
	l.warnOnce("what this session may do could not be read; requests that need it are refused until it can",
		l.unread.cause)
	return false
}

// homeMissing returns an error if the home is no longer the directory that it
// was when the session opened: it was moved away, replaced or unmounted.
func (s *Session) homeMissing() error {
	now, err := os.Stat(s.opts.Home)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s does not exist: it was moved or unmounted", s.opts.Home)
	case err == nil && s.home != nil && !os.SameFile(now, s.home):
		return fmt.Errorf("%s is another directory now: it was replaced or unmounted", s.opts.Home)
	}
	return nil // any other error shows where the home is read
}

// withhold denies every operation of a connector while the home is missing.
func (l *loader) withhold(missing error) {
	l.warnOnce("the home is missing; requests that need a connector are refused until it is back", missing)
	if l.warned[missing.Error()] {
		return
	}
	l.unread = newUnreadGrants()
	for _, c := range l.connectors {
		l.unread.connectors[c.FQN] = proxy.ReasonHomeMissing
	}
	l.withholdActions(proxy.ReasonHomeMissing, missing)
	if grants, err := l.grants(l.connectors, nil); err == nil {
		l.s.plane.SetGrants(grants)
	}
}
