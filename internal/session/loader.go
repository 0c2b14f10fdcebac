package session

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/proxy"
	"github.com/ALRubinger/aileron/proxy/scrub"
	"github.com/ALRubinger/aileron/spec"
	"github.com/ALRubinger/aileron/spec/store"
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

	mu          sync.Mutex // guards all below
	fingerprint string     // of store and vault at the last load; "": load again
	connectors  []*spec.Connector
	secrets     map[string]scrub.Credential // every secret that this session ever held: all stay redacted
	recorded    map[string]bool             // faults of connectors that are in the audit log
	unread      *unreadGrants               // of the load under way
	unreadLoads int                         // loads in a row that could not read everything

	actions      map[string]proxy.Action // of the load under way, by name
	actionFaults map[string]bool         // that were reported

	granted        []granted // by the last load
	recordedGrants []granted // that the audit log has
	began          bool      // session.started is recorded
	unclear        string    // why the load under way grants less than is installed and bound; "" otherwise

	grantedActions, recordedActions []grantedAction // as granted and recordedGrants

	warned  map[string]bool // what the last load failed for
	warning map[string]bool // what the load under way failed for
}

// reloadEvery is how often a running session looks for changes on disk: a
// revocation takes effect within a second.
const reloadEvery = 300 * time.Millisecond

// load returns the session's first grants.
func (l *loader) load(ctx context.Context) (*proxy.Grants, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.secrets, l.recorded = map[string]scrub.Credential{}, map[string]bool{}
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
	if len(chosen)+len(l.choosePinned()) > 0 && !l.s.vault.Unlocked() && !l.s.vault.LockedForAll() {
		v, err := l.s.opts.Unlock(ctx)
		if err != nil {
			return nil, err
		}
		l.s.vault = v
	}
	l.warnUnbound(connectors, chosen)
	return l.grants(connectors, chosen)
}

// watch refreshes the grants when the store or the vault changes, until ctx
// ends.
func (l *loader) watch(ctx context.Context) {
	tick := time.NewTicker(reloadEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			l.refresh(ctx)
		}
	}
}

// refresh replaces the plane's grants if the disk has changed.
func (l *loader) refresh(ctx context.Context) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now, _ := l.readFingerprint(); now != l.fingerprint {
		l.fingerprint = now
		l.reloadLocked(ctx)
	}
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
	all, faults := l.s.store.All()
	connectors := store.InForce(all, l.s.opts.Versions)
	connectors = l.used(l.unread.keep(connectors, l.connectors, faults))
	l.readActions(all, faults)
	if allowed, err := l.withAllowed(connectors, false); err == nil {
		connectors = allowed
	}
	if l.s.vault.LockedForAll() {
		l.s.vault.Lock()
	}
	grants, err := l.certainGrants(connectors)
	if err != nil || l.waitsForRead() {
		return
	}
	l.recordFaults(ctx, faults)
	if err := l.recordChange(ctx); err != nil {
		// What is not in the log is not used. The next tick tries again.
		l.warnOnce("a change of the grants could not be recorded; everything is refused until it can", err)
		l.withholdActions(proxy.ReasonActionUnusable, err)
		if grants, err = l.grants(nil, nil); err != nil {
			return
		}
	}
	l.s.plane.SetGrants(grants)
}

// certainGrants returns what connectors grant without what is undecided: no
// credential if the bindings are not clear, nothing at all if the connectors do
// not fit together.
func (l *loader) certainGrants(connectors []*spec.Connector) (*proxy.Grants, error) {
	chosen, err := l.choose(connectors)
	if err != nil {
		chosen = nil
		if !l.unread.addVault(err) {
			l.unclear = "bindings_unclear"
			l.warnOnce("the bindings changed and are not clear any more; nothing is injected until they are", err)
		}
	}
	grants, err := l.grants(connectors, chosen)
	if err != nil {
		l.unclear = "connectors_conflict"
		l.warnOnce("the grants changed and cannot be used; everything is refused until they can", err)
		l.withholdActions(proxy.ReasonActionUnusable, err)
		return l.grants(nil, nil)
	}
	return grants, nil
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
// fingerprint still.
func (l *loader) begun(fingerprint string) ([]*spec.Connector, []error) {
	if all, ok := l.s.opts.Reading.All(fingerprint); ok {
		return all, nil
	}
	return l.s.store.All()
}

// readFingerprint returns what changes with the store, the actions or the vault, and what changes with the store. One
// that cannot be read equals no other, so the grants are loaded again.
func (l *loader) readFingerprint() (all, ofStore string) {
	a, errA := l.s.store.Fingerprint()
	b, errB := l.s.vault.Fingerprint()
	if errA != nil || errB != nil {
		return "unreadable " + time.Now().String(), ""
	}
	c, err := l.library().Fingerprint()
	if err != nil {
		c = err.Error() // no action is in force, and it is reported once
	}
	return a + "\x00" + b + "\x00" + c, a
}
