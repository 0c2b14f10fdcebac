package session

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/proxy"
	"github.com/ALRubinger/aileron/proxy/scrub"
	"github.com/ALRubinger/aileron/spec"
	"github.com/ALRubinger/aileron/spec/store"
	"github.com/ALRubinger/aileron/vault"
)

// loader turns what is installed and bound into what a session grants, when the
// session opens and whenever the disk changes under it.
type loader struct {
	s *Session

	mu          sync.Mutex // guards all below
	fingerprint string     // of store and vault, at the last load
	connectors  []*spec.Connector
	needles     map[string]scrub.Needle // every secret that this session ever held: all stay redacted
	warned      map[string]bool         // what the last load failed for
	warning     map[string]bool         // what this load fails for
	broken      map[string]bool         // connectors whose failure was recorded
	unread      *unreadGrants           // of the load under way
	misses      int                     // loads in a row that could not read everything
}

// reloadEvery is how often a running session looks for changes on disk.
// Revocations take effect within a second.
const reloadEvery = 300 * time.Millisecond

// load reads the session's first grants. Anything broken or undecided is an
// error here; later it only takes away.
func (l *loader) load(ctx context.Context) (*proxy.Grants, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.needles, l.broken = map[string]scrub.Needle{}, map[string]bool{}
	l.unread = &unreadGrants{}
	l.fingerprint = l.readFingerprint()
	connectors, faults := l.s.store.Current()
	if len(faults) > 0 {
		l.recordBroken(ctx, faults)
		return nil, store.Hint(fmt.Errorf("verify the installed connectors: %w", errors.Join(faults...)))
	}
	chosen, err := l.choose(connectors)
	if err != nil {
		return nil, err
	}
	if len(chosen) > 0 && !l.s.vault.Unlocked() && !l.s.vault.LockedForAll() {
		v, err := l.s.opts.Unlock(ctx)
		if err != nil {
			return nil, err
		}
		l.s.vault = v
	}
	l.warnUnbound(connectors, chosen)
	return l.grants(connectors, chosen)
}

// installed returns the connectors of the last load. A reload replaces the
// list and never changes it.
func (l *loader) installed() []*spec.Connector {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.connectors
}

// choose picks each connector's binding: the only one, or what --bind names.
func (l *loader) choose(connectors []*spec.Connector) (map[spec.FQN]vault.Binding, error) {
	all, err := l.s.vault.Bindings()
	if err != nil && !errors.Is(err, vault.ErrNotInitialised) {
		return nil, fmt.Errorf("read the bindings: %w", err)
	}
	wanted := maps.Clone(l.s.opts.Bindings)
	chosen := map[spec.FQN]vault.Binding{}
	for _, c := range connectors {
		need := c.Credential()
		if need == nil {
			continue
		}
		var names []string
		for _, b := range all {
			if b.Connector != string(c.FQN) || spec.Kind(b.Kind) != need.Kind {
				continue
			}
			names = append(names, b.Identity)
			if want, ok := wanted[c.FQN]; !ok || want == b.Identity {
				chosen[c.FQN] = b
			}
		}
		want, ok := wanted[c.FQN]
		delete(wanted, c.FQN)
		if _, found := chosen[c.FQN]; ok && !found {
			return nil, hint.New(fmt.Errorf("use %s with the identity %q: it is not bound", c.FQN, want), "aileron binding list shows what is")
		}
		if !ok && len(names) > 1 {
			return nil, hint.New(fmt.Errorf("choose a credential for %s: it has the identities %s", c.FQN, strings.Join(names, ", ")),
				"say which with --bind %s=%s", c.FQN, names[0])
		}
	}
	for fqn := range wanted {
		return nil, hint.New(fmt.Errorf("use the binding of %s: no such connector is installed, or it needs no credential", fqn), "aileron connector list shows what is installed")
	}
	return chosen, nil
}

// warnUnbound tells the person which operations will be refused, and why.
func (l *loader) warnUnbound(connectors []*spec.Connector, chosen map[spec.FQN]vault.Binding) {
	for _, c := range connectors {
		if _, ok := chosen[c.FQN]; c.Credential() != nil && !ok {
			l.s.opts.Infof("aileron: %s has no credential bound, so its operations will be refused; bind one with: aileron binding setup %s", c.FQN, c.FQN)
		}
	}
}

// grants opens the chosen credentials and builds the whole.
func (l *loader) grants(connectors []*spec.Connector, chosen map[spec.FQN]vault.Binding) (*proxy.Grants, error) {
	index, err := spec.NewIndex(connectors)
	if err != nil {
		return nil, hint.New(fmt.Errorf("combine the installed connectors: %w", err), "remove one of the two with: aileron connector remove FQN")
	}
	out := &proxy.Grants{Index: index, Bound: map[spec.FQN]proxy.Bound{}, Unreadable: l.unread.connectors,
		Locked: l.s.vault.LockedForAll() || len(chosen) > 0 && !l.s.vault.Unlocked()}
	for fqn, b := range chosen {
		if out.Locked {
			break
		}
		cred, err := l.s.vault.Credential(b.Name)
		if errors.Is(err, vault.ErrNotBound) || l.unread.noteVault(err) {
			continue // revoked just now, or not known
		}
		if err != nil {
			return nil, fmt.Errorf("open the credential %s: %w", b.Name, err)
		}
		out.Bound[fqn] = proxy.Bound{Binding: b.Name, Credential: cred}
		l.needles[cred.Username+"\x00"+cred.Secret.Reveal()] = scrub.Needle{Secret: []byte(cred.Secret.Reveal()), Username: cred.Username}
	}
	var needles []scrub.Needle
	for _, n := range l.needles {
		needles = append(needles, n)
	}
	out.Scrub = scrub.NewSet(needles)
	if out.VaultUnreadable = l.unread.vault; out.VaultUnreadable {
		clear(out.Bound)
	}
	l.connectors = connectors
	return out, nil
}

// watch replaces the plane's grants when the store or the vault changes.
// What cannot be read any more is granted no more.
func (l *loader) watch(ctx context.Context) {
	tick := time.NewTicker(reloadEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			l.refresh(ctx, false)
		}
	}
}

// refresh loads the grants again when the disk changed, or always with force.
func (l *loader) refresh(ctx context.Context, force bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.readFingerprint()
	if now == l.fingerprint && !force {
		return
	}
	l.fingerprint = now
	l.warned, l.warning = l.warning, map[string]bool{}
	if err := l.s.homeMissing(); err != nil {
		l.withhold(err)
		return
	}
	l.unread = &unreadGrants{connectors: map[spec.FQN]proxy.Reason{}}
	connectors, faults := l.s.store.Current()
	connectors = l.unread.keepUnread(connectors, l.connectors, faults)
	if l.s.vault.LockedForAll() {
		l.s.vault.Lock()
	}
	chosen, err := l.choose(connectors)
	if err != nil && !l.unread.noteVault(err) {
		l.warnOnce("the bindings changed and are not clear any more; nothing is injected until they are", err)
	}
	if err != nil {
		chosen = nil
	}
	grants, err := l.grants(connectors, chosen)
	if err != nil {
		l.warnOnce("the grants changed and cannot be used; everything is refused until they can", err)
		if grants, err = l.grants(nil, nil); err != nil {
			return
		}
	}
	if !l.unread.any() {
		l.misses = 0
	} else if l.missed() {
		return // the next tick is soon enough for a revocation
	}
	l.recordBroken(ctx, faults)
	l.s.plane.SetGrants(grants)
}

// warnOnce logs why a load failed, unless the last one failed for that too, and
// has it tried again at the next tick: it may have met a file half written.
func (l *loader) warnOnce(what string, err error) {
	l.fingerprint = ""
	if !l.warned[err.Error()] {
		l.s.opts.Log.Warn(what, "error", err)
	}
	l.warning[err.Error()] = true
}

func (l *loader) recordBroken(ctx context.Context, faults []error) {
	for _, fault := range faults {
		if l.broken[fault.Error()] {
			continue
		}
		l.broken[fault.Error()] = true
		row := audit.Row{Event: audit.EventConnectorVerifyFailed, SessionID: l.s.id, Source: audit.SourceLauncher,
			Reason: "hash_mismatch", Fields: map[string]any{"error": fault.Error()}}
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
		_ = l.s.audit.AppendSoon(ctx, row) // which holds it while the log cannot be written
	}
}

func (l *loader) readFingerprint() string {
	a, errA := l.s.store.Fingerprint()
	b, errB := l.s.vault.Fingerprint()
	if errA != nil || errB != nil {
		return "unreadable " + time.Now().String() // never equal: load again
	}
	return a + "\x00" + b
}
