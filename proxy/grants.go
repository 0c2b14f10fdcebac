package proxy

import (
	"cmp"
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

	inForce context.Context //nolint:containedctx // see InForce
	retire  context.CancelFunc
	keys    map[spec.FQN]upstream.Key // of the upstream connections of Bound's credentials
	number  int64                     // see Generation
	pin     string                    // the hash under which Pinned has these grants; "": they are the plane's own

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
	ID         string // differs after each change of the credential but a renewal of Login
	Login      Login  // renews Credential; nil: it is used as it is
}

// Login keeps the credential of a binding valid, whose secret changes meanwhile. Package oauth has one.
type Login interface {
	// Login returns its id. Connections upstream are shared by the requests of one login.
	Login() string
	// Fresh returns when the plane's grants have a secret that can be used, at once if they do. refused is one that the
	// service did not accept; zero: there is none. The error is [vault.ErrLoginNeeded], [vault.ErrLocked], or another
	// for which a later attempt may help.
	Fresh(ctx context.Context, refused vault.Secret) error
}

// SetGrants replaces what the plane may do from the next request on, on
// connections that are already open too. Those of them that are idle end, unless
// clients may do what they could before.
func (p *Plane) SetGrants(g *Grants) {
	g.keys = p.upstreamKeys(g.Bound)
	keys := slices.Collect(maps.Values(g.keys))
	for hash, pinned := range g.Pinned {
		pinned.pin, pinned.keys = hash, p.upstreamKeys(pinned.Bound)
		keys = slices.AppendSeq(keys, maps.Values(pinned.keys))
	}
	old := p.grants.Load()
	same := old != nil && g.allowsSame(old)
	if old != nil {
		g.number = old.number
		if !same || !maps.EqualFunc(g.Actions, old.Actions, sameAction) {
			g.number++
		}
	}
	if same {
		g.inForce, g.retire = old.inForce, old.retire
	} else {
		g.inForce, g.retire = context.WithCancel(p.draining)
	}
	for _, pinned := range g.Pinned {
		pinned.inForce = g.inForce
	}
	p.upstream.Keep(keys...) // before an exchange asks for one of them
	if p.grants.Store(g); old != nil && !same {
		old.retire()
	}
}

// allowsSame reports whether a client of a tunnel may do with g what it could with old, and with the same credentials.
// Calls of actions begin with the grants of their moment.
func (g *Grants) allowsSame(old *Grants) bool {
	return g.Locked == old.Locked && g.VaultUnreadable == old.VaultUnreadable &&
		maps.Equal(g.Unreadable, old.Unreadable) && maps.Equal(g.keys, old.keys) &&
		maps.EqualFunc(g.Bound, old.Bound, func(a, b Bound) bool { return a.Binding == b.Binding }) &&
		g.Index.Equal(old.Index)
}

// Grants returns what the plane may do now.
func (p *Plane) Grants() *Grants { return p.grants.Load() }

// sameAction reports whether a client that calls an action by its name calls the same.
func sameAction(a, b Action) bool {
	if a.Linked == nil || b.Linked == nil {
		return a.Linked == b.Linked
	}
	return a.Linked.Hash == b.Linked.Hash
}

// Generation counts, from 0, how often what a plane may do has changed. It stays where g allows what the grants before
// it did.
func (g *Grants) Generation() int64 { return g.number }

// now returns what has taken the place of g.
func (p *Plane) now(g *Grants) *Grants {
	current := p.grants.Load()
	if g.pin == "" {
		return current
	}
	return cmp.Or(current.Pinned[g.pin], g) // an action that was removed meanwhile ends with what it began with
}

// InForce ends when grants that allow something else take the place of g, or the plane drains.
func (g *Grants) InForce() context.Context { return g.inForce }

// Credential returns the credential of an operation that needs one. Such an operation never goes without. Its secret
// may be zero until [Login.Fresh] has returned.
func (g *Grants) Credential(op *spec.Operation) (Bound, *Denial) {
	fqn := op.Connector.FQN
	bound, ok := g.Bound[fqn]
	switch {
	case ok && (bound.Login != nil || !bound.Credential.Secret.IsZero()) &&
		bound.Credential.Kind == string(op.Injection.Kind):
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
		if b.Login != nil {
			keys[fqn] = p.upstream.Key("login", b.Login.Login())
			continue
		}
		keys[fqn] = p.upstream.Key(c.Kind, c.Username, c.Secret.Reveal())
	}
	return keys
}
