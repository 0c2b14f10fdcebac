package proxy

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/ALRubinger/aileron/proxy/modify"
	"github.com/ALRubinger/aileron/proxy/scrub"
	"github.com/ALRubinger/aileron/proxy/upstream"
	"github.com/ALRubinger/aileron/spec"
	"github.com/ALRubinger/aileron/spec/action"
	"github.com/ALRubinger/aileron/vault"
)

// Grants is what the plane may do at one moment: the verified operations,
// the credentials bound to them, and the set that redacts those. A plane's
// grants are replaced as a whole; an exchange keeps those that it began with.
type Grants struct {
	Index  *spec.Index
	Bound  map[spec.FQN]Bound
	Scrub  *scrub.Set // of every secret that this session ever held
	Locked bool       // the vault is locked: Bound is empty and may fill again

	// Unreadable holds the connectors that could not be read again, each with
	// its reason: ReasonConnectorUnreadable, ReasonStoreUnreadable or
	// ReasonHomeMissing. What they grant now is not known, so their operations are
	// denied.
	Unreadable map[spec.FQN]Reason
	// VaultUnreadable: the vault could not be read. Bound is empty and may fill
	// again.
	VaultUnreadable bool

	// Actions are those of the session's home, by name. Pinned has, by their hashes, the connectors that actions pin: each
	// with an Index of its own bytes alone and the credential that is bound to it. Only calls of actions use them.
	Actions map[string]Action
	Pinned  map[string]*Grants

	inForce context.Context //nolint:containedctx // ends when other grants take their place, or the plane drains
	retire  context.CancelFunc
	keys    map[spec.FQN]upstream.Key // of the upstream connections of Bound's credentials

	injections sync.Map // *spec.Operation → *modify.InjectCredential, of operations that were requested
}

// Action is an action file of the session's home.
type Action struct {
	Linked *action.Linked // nil: it cannot be used
	Fault  error          // why not, with a hint
	Reason Reason         // of the denial of its calls then: one of the reasons for actions
}

// Bound is a connector's credential and the name of its binding.
type Bound struct {
	Binding    string
	Credential vault.Credential
}

// SetGrants replaces what the plane may do from the next request on, on
// connections that are already open too. Those of them that are idle end.
func (p *Plane) SetGrants(g *Grants) {
	g.inForce, g.retire = context.WithCancel(p.draining)
	g.keys = p.upstreamKeys(g.Bound)
	keys := slices.Collect(maps.Values(g.keys))
	for _, pinned := range g.Pinned {
		pinned.inForce, pinned.keys = g.inForce, p.upstreamKeys(pinned.Bound)
		keys = slices.AppendSeq(keys, maps.Values(pinned.keys))
	}
	p.upstream.Keep(keys...) // before an exchange asks for one of them
	if old := p.grants.Swap(g); old != nil {
		old.retire()
	}
}

// Grants returns what the plane may do now.
func (p *Plane) Grants() *Grants { return p.grants.Load() }

// InForce ends when other grants take the place of g, or the plane drains.
func (g *Grants) InForce() context.Context { return g.inForce }

// Credential returns the credential of an operation that needs one. Such an operation never goes without.
func (g *Grants) Credential(op *spec.Operation) (Bound, *Denial) {
	fqn := op.Connector.FQN
	bound, ok := g.Bound[fqn]
	switch {
	case ok && !bound.Credential.Secret.IsZero() && bound.Credential.Kind == string(op.Injection.Kind):
		return bound, nil
	case g.VaultUnreadable:
		return Bound{}, ReasonVaultUnread.Deny("the vault could not be read, so the credential of %s is out of reach", fqn)
	case g.Locked:
		return Bound{}, ReasonVaultLocked.Deny("the vault is locked, so the credential of %s is out of reach", fqn)
	}
	d := ReasonUnbound.Deny("no credential is bound for %s", fqn)
	d.Requested = "credential:" + string(op.Injection.Kind) + ":" + string(fqn)
	return Bound{}, d
}

// injection returns the step that injects the credential of an operation.
func (g *Grants) injection(op *spec.Operation, b *Bound) *modify.InjectCredential {
	if m, ok := g.injections.Load(op); ok {
		return m.(*modify.InjectCredential)
	}
	m := modify.NewInjectCredential(op, b.Credential)
	g.injections.Store(op, m)
	return m
}

// upstreamKeys returns the keys of the upstream connections that the connectors'
// requests use.
func (p *Plane) upstreamKeys(bound map[spec.FQN]Bound) map[spec.FQN]upstream.Key {
	keys := make(map[spec.FQN]upstream.Key, len(bound))
	for fqn, b := range bound {
		c := b.Credential
		keys[fqn] = p.upstream.Key(c.Kind, c.Username, c.Secret.Reveal())
	}
	return keys
}
