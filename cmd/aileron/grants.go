package main

import (
	"context"
	"errors"
	"fmt"
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

// granter turns what is installed and bound into what a session may do, at
// its start and whenever the disk changes under it.
type granter struct {
	s    *session
	opts *sessionOptions

	mu         sync.Mutex // guards all below
	print      string     // of store and vault, at the last load
	connectors []*spec.Connector
	needles    map[string]scrub.Needle // every secret this session ever held: all stay wiped out
	complained map[string]bool         // what the last load failed for, and complaints what this one does
	complaints map[string]bool
	broken     map[string]bool // connectors whose failure was written down
	unread     *unreadGrants   // of the load under way
	misses     int             // loads in a row that could not read everything
}

// reloadEvery is how often a running session looks for changes on disk.
// Revocations take effect within a second.
const reloadEvery = 300 * time.Millisecond

// load reads the session's first grants. Anything broken or undecided is an
// error here; later it only takes away.
func (g *granter) load(ctx context.Context) (*proxy.Grants, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.needles, g.broken = map[string]scrub.Needle{}, map[string]bool{}
	g.unread = &unreadGrants{}
	g.print = g.fingerprint()
	connectors, faults := g.s.store.Current()
	if len(faults) > 0 {
		g.recordBroken(ctx, faults)
		return nil, storeHint(fmt.Errorf("verify the installed connectors: %w", errors.Join(faults...)))
	}
	chosen, err := g.choose(connectors)
	if err != nil {
		return nil, err
	}
	if len(chosen) > 0 && !g.s.vault.Unlocked() && !g.s.vault.LockedForAll() {
		v, err := g.s.app.openVault(ctx, g.opts.passphraseFile)
		if err != nil {
			return nil, err
		}
		g.s.vault = v
	}
	if err := g.warnUnbound(connectors, chosen); err != nil {
		return nil, err
	}
	return g.grants(connectors, chosen)
}

// installed returns the connectors of the last load. A reload replaces the
// list and never changes it.
func (g *granter) installed() []*spec.Connector {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.connectors
}

// choose picks each connector's binding: the only one, or what --bind names.
func (g *granter) choose(connectors []*spec.Connector) (map[spec.FQN]vault.Binding, error) {
	all, err := g.s.vault.Bindings()
	if err != nil && !errors.Is(err, vault.ErrNotInitialised) {
		return nil, fmt.Errorf("read the bindings: %w", err)
	}
	wanted := map[string]string{}
	for _, b := range g.opts.binds {
		fqn, identity, _ := strings.Cut(b, "=")
		wanted[fqn] = identity
	}
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
			if want, ok := wanted[string(c.FQN)]; !ok || want == b.Identity {
				chosen[c.FQN] = b
			}
		}
		want, ok := wanted[string(c.FQN)]
		delete(wanted, string(c.FQN))
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
func (g *granter) warnUnbound(connectors []*spec.Connector, chosen map[spec.FQN]vault.Binding) error {
	for _, c := range connectors {
		if _, ok := chosen[c.FQN]; c.Credential() != nil && !ok {
			g.s.app.sayf("aileron: %s has no credential bound, so its operations will be refused; bind one with: aileron binding setup %s", c.FQN, c.FQN)
		}
	}
	return nil
}

// grants opens the chosen credentials and builds the whole.
func (g *granter) grants(connectors []*spec.Connector, chosen map[spec.FQN]vault.Binding) (*proxy.Grants, error) {
	index, err := spec.NewIndex(connectors)
	if err != nil {
		return nil, hint.New(fmt.Errorf("combine the installed connectors: %w", err), "remove one of the two with: aileron connector remove FQN")
	}
	out := &proxy.Grants{Index: index, Bound: map[spec.FQN]proxy.Bound{}, Unreadable: g.unread.connectors,
		Locked: g.s.vault.LockedForAll() || len(chosen) > 0 && !g.s.vault.Unlocked()}
	for fqn, b := range chosen {
		if out.Locked {
			break
		}
		cred, err := g.s.vault.Credential(b.Name)
		if errors.Is(err, vault.ErrNotBound) || g.unread.noteVault(err) {
			continue // revoked just now, or not known
		}
		if err != nil {
			return nil, fmt.Errorf("open the credential %s: %w", b.Name, err)
		}
		out.Bound[fqn] = proxy.Bound{Binding: b.Name, Credential: cred}
		g.needles[cred.Username+"\x00"+cred.Secret.Reveal()] = scrub.Needle{Secret: []byte(cred.Secret.Reveal()), Username: cred.Username}
	}
	var needles []scrub.Needle
	for _, n := range g.needles {
		needles = append(needles, n)
	}
	out.Scrub = scrub.NewSet(needles)
	if out.VaultUnreadable = g.unread.vault; out.VaultUnreadable {
		clear(out.Bound)
	}
	g.connectors = connectors
	return out, nil
}

// watch replaces the plane's grants when the store or the vault changes.
// What cannot be read any more is granted no more.
func (g *granter) watch(ctx context.Context) {
	tick := time.NewTicker(reloadEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			g.refresh(ctx, false)
		}
	}
}

// refresh loads the grants again when the disk changed, or always with force.
func (g *granter) refresh(ctx context.Context, force bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	print := g.fingerprint()
	if print == g.print && !force {
		return
	}
	g.print = print
	g.complained, g.complaints = g.complaints, map[string]bool{}
	if err := g.s.homeMissing(); err != nil {
		g.withhold(err)
		return
	}
	g.unread = &unreadGrants{connectors: map[spec.FQN]proxy.Reason{}}
	connectors, faults := g.s.store.Current()
	connectors = g.unread.keepUnread(connectors, g.connectors, faults)
	if g.s.vault.LockedForAll() {
		g.s.vault.Lock()
	}
	chosen, err := g.choose(connectors)
	if err != nil && !g.unread.noteVault(err) {
		g.complain("the bindings changed and are not clear any more; nothing is injected until they are", err)
	}
	if err != nil {
		chosen = nil
	}
	grants, err := g.grants(connectors, chosen)
	if err != nil {
		g.complain("the grants changed and cannot be used; everything is refused until they can", err)
		if grants, err = g.grants(nil, nil); err != nil {
			return
		}
	}
	if !g.unread.any() {
		g.misses = 0
	} else if g.missed() {
		return // the next tick is soon enough for a revocation
	}
	g.recordBroken(ctx, faults)
	g.s.plane.SetGrants(grants)
}

// complain logs why a load failed, unless the last one failed for that too, and
// has it tried again at the next tick: it may have met a file half written.
func (g *granter) complain(what string, err error) {
	g.print = ""
	if !g.complained[err.Error()] {
		g.s.log.Warn(what, "error", err)
	}
	g.complaints[err.Error()] = true
}

func (g *granter) recordBroken(ctx context.Context, faults []error) {
	for _, fault := range faults {
		if g.broken[fault.Error()] {
			continue
		}
		g.broken[fault.Error()] = true
		row := audit.Row{Event: audit.EventConnectorVerifyFailed, SessionID: g.s.id, Source: audit.SourceLauncher,
			Reason: "hash_mismatch", Fields: map[string]any{"error": fault.Error()}}
		if reason, unread := isUnread(fault); unread {
			row.Reason = string(reason)
		} else {
			g.s.log.Error("a connector failed its verification and is not used", "error", fault)
		}
		var entry *store.EntryError
		if errors.As(fault, &entry) {
			row.ConnectorFQN, row.ConnectorVersion = string(entry.Entry.FQN), entry.Entry.Version
			row.Fields["hash"] = entry.Entry.Hash
		}
		_ = g.s.audit.AppendSoon(ctx, row) // which holds it while the log cannot be written
	}
}

func (g *granter) fingerprint() string {
	a, errA := g.s.store.Fingerprint()
	b, errB := g.s.vault.Fingerprint()
	if errA != nil || errB != nil {
		return "unreadable " + time.Now().String() // never equal: load again
	}
	return a + "\x00" + b
}
