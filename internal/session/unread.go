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

// keepUnread returns connectors with those of before that could not be read
// again in their places, and takes down which they are.
func (u *unreadGrants) keepUnread(connectors, before []*spec.Connector, faults []error) []*spec.Connector {
	for _, fault := range faults {
		reason, unread := store.Unreadable(fault)
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
			u.connectors[c.FQN] = proxy.Reason(reason)
		}
	}
	return connectors
}

// homeMissing returns an error when the home is not the directory any more that
// it was at the session's start: it was moved away, or unmounted.
func (s *Session) homeMissing() error {
	now, err := os.Stat(s.opts.Home)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s is not there: it was moved or unmounted", s.opts.Home)
	case err == nil && s.home != nil && !os.SameFile(now, s.home):
		return fmt.Errorf("%s is another directory now: it was replaced or unmounted", s.opts.Home)
	}
	return nil // what else is wrong with it shows where it is read
}

// withhold denies every operation of a connector while the home is missing.
func (l *loader) withhold(missing error) {
	l.warnOnce("the home is missing; requests that need a connector are refused until it is back", missing)
	if l.warned[missing.Error()] {
		return
	}
	l.unread = &unreadGrants{connectors: map[spec.FQN]proxy.Reason{}}
	for _, c := range l.connectors {
		l.unread.connectors[c.FQN] = proxy.ReasonHomeMissing
	}
	if grants, err := l.grants(l.connectors, nil); err == nil {
		l.s.plane.SetGrants(grants)
	}
}

// missed counts a load that could not read everything, and reports whether it
// is the first one: that may be a moment without descriptors.
func (l *loader) missed() bool {
	l.misses++
	if l.misses == 1 {
		l.fingerprint = ""
		return true
	}
	l.warnOnce("what this session may do could not be read; requests that need it are refused until it can", l.unread.cause)
	return false
}
