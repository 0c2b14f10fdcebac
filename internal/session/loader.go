package session

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/internal/format"
	"github.com/ALRubinger/aileron/proxy"
	"github.com/ALRubinger/aileron/proxy/scrub"
	"github.com/ALRubinger/aileron/spec"
	"github.com/ALRubinger/aileron/spec/store"
	"github.com/ALRubinger/aileron/vault"
	"github.com/ALRubinger/aileron/vault/command"
	"github.com/ALRubinger/aileron/vault/oauth"
)

// loader turns what is installed and bound into what the session grants: when
// the session opens, and whenever the disk changes under it.
//
//	store ─ verified connectors ─┬─ versions in force ─┐
//	actions ─ what they pin ─────┘                     ├─► proxy.Grants
//	vault ─ bindings ─ choice ─────────────────────────┘
//
// The first load fails on anything that is broken or undecided. A later one
// cannot fail any more: it takes away what is not certain.
type loader struct {
	s *Session

	redacts atomic.Pointer[scrub.Set] // of the last load's secrets
	changed chan struct{}             // has one when the plane's grants were replaced: see [Session.Follow]

	mu          sync.Mutex // guards all below
	fingerprint string     // of store and vault at the last load; "": load again
	connectors  []*spec.Connector
	before      []*spec.Connector           // those that were in force last, also while all is refused
	withheld    bool                        // the load under way refuses all
	identities  map[spec.FQN]string         // of the bindings that were chosen first
	secrets     map[string]scrub.Credential // every secret that this session ever held: all stay redacted
	logins      map[string]*oauth.Source    // by their ids
	commands    map[string]*command.Source  // likewise: of credentials that programs print
	tokens      map[string][]string         // of logins, by their ids: those among secrets, the oldest first
	renewed     []func()                    // what follows when the grants of the load under way are in force
	recorded    map[string]bool             // faults of connectors that are in the audit log
	unread      *unreadGrants               // of the load under way
	unreadLoads int                         // loads in a row that could not read everything

	actions      map[string]proxy.Action // of the load under way, by name
	actionFaults map[string]bool         // that were reported

	granted        []granted // by the last load
	recordedGrants []granted // that the audit log has
	began          bool      // session.started is recorded
	misfits        []string  // connectors that are installed and do not fit those in force, as FQN@VERSION
	unclear        string    // why the load under way grants less than is installed and bound; "" otherwise

	grantedActions, recordedActions []grantedAction // as granted and recordedGrants
	recordedMisfits                 []string

	warned  map[string]bool // what the last load failed for
	warning map[string]bool // what the load under way failed for
}

// load returns the session's first grants.
func (l *loader) load(ctx context.Context) (*proxy.Grants, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.secrets, l.recorded = map[string]scrub.Credential{}, map[string]bool{}
	l.identities = map[spec.FQN]string{}
	l.unread = newUnreadGrants()
	var ofStore string
	l.fingerprint, ofStore = l.readFingerprint()
	all, faults := l.begun(ofStore)
	if len(faults) > 0 {
		l.recordFaults(ctx, faults)
		return nil, store.Hint(fmt.Errorf("verify the installed connectors: %w", errors.Join(faults...)))
	}
	connectors, err := l.selected(all)
	if err != nil {
		return nil, err
	}
	l.noteVersions(all, connectors)
	if connectors, err = l.withAllowed(connectors, true); err != nil {
		return nil, err
	}
	chosen, err := l.choose(connectors)
	if err != nil {
		return nil, err
	}
	l.readActions(all, nil)
	if len(chosen)+len(l.choosePinned()) > 0 && !l.vault().Unlocked() && !l.vault().LockedForAll() {
		v, err := l.s.opts.Unlock(ctx)
		if err != nil {
			return nil, err
		}
		l.s.vault = v
	}
	l.warnUnbound(connectors, chosen)
	grants, err := l.grants(connectors, chosen)
	if err == nil {
		l.before = connectors
	}
	return grants, err
}

// refresh replaces the plane's grants if the disk has changed. It reports false if they have to be loaded again,
// whether it changes or not.
func (l *loader) refresh(ctx context.Context) (settled bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now, _ := l.readFingerprint(); now == "" || now != l.fingerprint {
		l.fingerprint = now
		l.reloadLocked(ctx)
	}
	return l.fingerprint != ""
}

// reload replaces the plane's grants, whether the disk has changed or not.
func (l *loader) reload(ctx context.Context) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fingerprint, _ = l.readFingerprint()
	l.reloadLocked(ctx)
}

// reloadLocked replaces the plane's grants by what the disk holds now. l.mu must
// be held.
func (l *loader) reloadLocked(ctx context.Context) {
	l.warned, l.warning, l.unclear = l.warning, map[string]bool{}, ""
	if err := l.s.homeMissing(); err != nil {
		l.withhold(err)
		return
	}
	l.unread = newUnreadGrants()
	all, faults := l.store().All()
	connectors := store.InForce(all, l.s.opts.Versions)
	connectors = l.used(l.unread.keep(connectors, l.before, faults))
	l.readActions(all, faults)
	if allowed, err := l.withAllowed(connectors, false); err == nil {
		connectors = allowed
	}
	if l.vault().LockedForAll() {
		l.vault().Lock()
	}
	grants, err := l.certainGrants(connectors, all)
	if err != nil || l.waitsForRead() {
		return
	}
	l.recordFaults(ctx, faults)
	if err := l.recordChange(ctx); err != nil {
		// What is not in the log is not used. The next tick tries again.
		l.warnOnce("a change of the grants could not be recorded; everything is refused until it can", err)
		l.withholdActions(proxy.ReasonActionUnusable, err)
		l.withheld = true
		if grants, err = l.grants(nil, nil); err != nil {
			return
		}
	}
	l.setGrants(grants)
	if !l.withheld {
		l.before = l.connectors
	}
}

// certainGrants returns what connectors grant without what is undecided: no
// credential if the bindings are not clear, and of connectors that do not fit
// together those that were in force before, and are among all that are installed.
func (l *loader) certainGrants(connectors, all []*spec.Connector) (*proxy.Grants, error) {
	l.withheld = false
	grants, err := l.clearGrants(connectors)
	if err == nil {
		l.misfits = nil
		return grants, nil
	}
	fit := l.fitting(connectors, l.before, all)
	grants, again := l.clearGrants(fit)
	l.unclear = "connectors_conflict"
	if again != nil {
		l.warnOnce("the grants changed and cannot be used; everything is refused until they can", err)
		l.withholdActions(proxy.ReasonActionUnusable, err)
		l.withheld = true
		return l.grants(nil, nil)
	}
	l.tellMisfits(connectors, fit, err)
	return grants, nil
}

// fitting returns those connectors of before that are still installed, or could not be read, and each of the others
// that fits them, with the hosts of --allow.
func (l *loader) fitting(connectors, before, all []*spec.Connector) []*spec.Connector {
	fit := slices.DeleteFunc(slices.Clone(before), func(c *spec.Connector) bool {
		_, unread := l.unread.connectors[c.FQN]
		return !unread && !slices.ContainsFunc(all, func(o *spec.Connector) bool { return o.Hash == c.Hash })
	})
	for _, c := range connectors {
		if c.Hash != "" && slices.ContainsFunc(fit, func(o *spec.Connector) bool { return o.Hash == c.Hash }) {
			continue
		}
		with := slices.DeleteFunc(slices.Clone(fit), func(o *spec.Connector) bool { return o.FQN == c.FQN })
		with = append(with, c)
		if _, err := spec.NewIndex(with); err == nil {
			fit = with
		}
	}
	if allowed, err := l.withAllowed(fit, false); err == nil {
		fit = allowed
	}
	return fit
}

// tellMisfits notifies the owner, once, of connectors that are installed and not used: they do not fit those that are.
func (l *loader) tellMisfits(connectors, used []*spec.Connector, err error) {
	var misfits []string
	for _, c := range connectors {
		if !slices.Contains(used, c) && c.Hash != "" {
			misfits = append(misfits, string(c.FQN)+"@"+c.Version)
		}
	}
	if !slices.Equal(misfits, l.misfits) {
		l.s.TellOwner("the session %s goes on without %s, which does not fit what it has: %v", l.s.id,
			strings.Join(misfits[:min(len(misfits), maxNoted)], ", "), err)
	}
	l.misfits = misfits
}

// clearGrants returns what connectors grant, without credentials if the bindings are not clear. The error is that of
// connectors that do not fit together.
func (l *loader) clearGrants(connectors []*spec.Connector) (*proxy.Grants, error) {
	chosen, err := l.choose(connectors)
	if err != nil {
		chosen = nil
		if !l.unread.addVault(err) {
			l.unclear = "bindings_unclear"
			l.warnOnce("the bindings changed and are not clear any more; nothing is injected until they are", err)
		}
	}
	return l.grants(connectors, chosen)
}

// installed returns the connectors of the last load. A reload replaces the list
// and never changes it.
func (l *loader) installed() []*spec.Connector {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.connectors
}

// warnOnce logs why a load failed, unless the last one failed for that too, and
// has the next tick load again: this one may have met a file half written.
func (l *loader) warnOnce(what string, err error) {
	l.fingerprint = ""
	if !l.warned[err.Error()] {
		l.s.opts.Log.Warn(what, "error", err)
	}
	l.warning[err.Error()] = true
}

// recordFaults records which connectors cannot be used and why, each fault
// once. The log holds the rows while they cannot be written.
func (l *loader) recordFaults(ctx context.Context, faults []error) {
	for _, fault := range faults {
		if l.recorded[fault.Error()] {
			continue
		}
		l.recorded[fault.Error()] = true
		row := l.s.row(audit.EventConnectorVerifyFailed, map[string]any{"error": fault.Error()})
		row.Reason = "hash_mismatch"
		if reason, unread := store.Unreadable(fault); unread {
			row.Reason = reason
		} else {
			l.s.opts.Log.Error("a connector failed its verification and is not used", "error", fault)
		}
		var entry *store.EntryError
		if errors.As(fault, &entry) {
			row.ConnectorFQN, row.ConnectorVersion = string(entry.Entry.FQN), entry.Entry.Version
			row.Fields["hash"] = entry.Entry.Hash
		}
		_ = l.s.audit.AppendSoon(ctx, row)
	}
}

// begun returns what is installed: as the reading that was begun before the session found it, if the store has that
// fingerprint still. A session with [Options.Grants] begins without any.
func (l *loader) begun(fingerprint string) ([]*spec.Connector, []error) {
	if l.s.opts.Grants != nil {
		l.fingerprint = ""
		return nil, nil
	}
	if all, ok := l.s.opts.Reading.All(fingerprint); ok {
		return all, nil
	}
	return l.store().All()
}

// readFingerprint returns what changes with the store, the actions or the vault, and what changes with the store. They
// are "" if they cannot be read: then the grants are loaded again.
func (l *loader) readFingerprint() (all, ofStore string) {
	a, errA := l.store().Fingerprint()
	b, errB := l.vault().Fingerprint()
	if errA != nil || errB != nil {
		return "", ""
	}
	c, err := l.library().Fingerprint()
	if err != nil {
		c = err.Error() // no action is in force, and it is reported once
	}
	return a + "\x00" + b + "\x00" + c, a
}

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
	for _, c := range l.before {
		l.unread.connectors[c.FQN] = proxy.ReasonHomeMissing
	}
	l.withholdActions(proxy.ReasonHomeMissing, missing)
	if grants, err := l.grants(l.before, nil); err == nil {
		l.setGrants(grants)
	}
}
