package session

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/proxy"
	"github.com/ALRubinger/aileron/proxy/scrub"
	"github.com/ALRubinger/aileron/spec"
	"github.com/ALRubinger/aileron/spec/local"
	"github.com/ALRubinger/aileron/spec/store"
	"github.com/ALRubinger/aileron/vault"
	"github.com/ALRubinger/aileron/vault/command"
	"github.com/ALRubinger/aileron/vault/oauth"
)

// bindings are the bindings that a session uses, by connector.
type bindings map[spec.FQN]vault.Binding

// choose returns the binding of each connector that has one: the only one, or
// that of the identity in [Options.Bindings]. It chooses nothing that its user
// has not decided. The identity stays what it was first, whatever is bound or
// revoked later: a session never goes on with another account.
func (l *loader) choose(connectors []*spec.Connector) (bindings, error) {
	all, err := l.vault().Bindings()
	if err != nil && !errors.Is(err, vault.ErrNotInitialised) {
		return nil, fmt.Errorf("read the bindings: %w", err)
	}
	chosen, unused := bindings{}, maps.Clone(l.s.opts.Bindings)
	for _, c := range connectors {
		if c.Credential() == nil {
			continue
		}
		delete(unused, c.FQN)
		b, err := l.chooseFor(c, all)
		if err != nil {
			return nil, err
		}
		if b != nil {
			chosen[c.FQN] = *b
		}
	}
	for fqn, b := range chosen {
		l.identities[fqn] = b.Identity
	}
	for fqn := range unused {
		return nil, hint.New(
			fmt.Errorf("use the binding of %s: no such connector is installed, or it needs no credential", fqn),
			"see what is installed with: aileron connector list")
	}
	return chosen, nil
}

// chooseFor returns the binding of one connector, nil if it has none.
func (l *loader) chooseFor(c *spec.Connector, all []vault.Binding) (*vault.Binding, error) {
	identity, named := l.s.opts.Bindings[c.FQN]
	first, begun := l.identities[c.FQN]
	var fitting []vault.Binding
	var identities []string
	for _, b := range all {
		if b.Connector == string(c.FQN) && spec.Kind(b.Kind) == c.Credential().Kind {
			fitting, identities = append(fitting, b), append(identities, b.Identity)
		}
	}
	if begun && !named {
		identity = first
	}
	at := slices.Index(identities, identity)
	switch {
	case begun && !named && at < 0:
		return nil, nil //nolint:nilnil // it was revoked
	case named && at < 0:
		return nil, hint.New(fmt.Errorf("use %s with the identity %q: it is not bound", c.FQN, identity),
			"see what is bound with: aileron binding list")
	case named || begun:
		return &fitting[at], nil
	case len(fitting) > 1:
		return nil, hint.New(
			fmt.Errorf("choose a credential for %s: it has the identities %s", c.FQN, strings.Join(identities, ", ")),
			"choose one with --bind %s=%s", c.FQN, identities[0])
	case len(fitting) == 1:
		return &fitting[0], nil
	}
	return nil, nil //nolint:nilnil // the connector has no binding
}

// mostUnbound is the number of connectors that have a line each.
const mostUnbound = 5

// warnUnbound names the connectors whose operations will be refused.
func (l *loader) warnUnbound(connectors []*spec.Connector, chosen bindings) {
	var unbound []spec.FQN
	for _, c := range connectors {
		b, ok := chosen[c.FQN]
		if ok && oauth.NeedsLogin(b, time.Now()) {
			l.s.opts.Infof("aileron: the login of %s has ended, so its operations will be refused; log in again with: "+
				"aileron binding rebind %s", c.FQN, b.Name)
		}
		if c.Credential() != nil && !ok {
			unbound = append(unbound, c.FQN)
		}
	}
	if len(unbound) > mostUnbound {
		l.s.opts.Infof("aileron: %s, %s and %d other connectors have no credential bound, so their operations will be "+
			"refused; bind one with: aileron binding setup CONNECTOR", unbound[0], unbound[1], len(unbound)-2)
		return
	}
	for _, fqn := range unbound {
		l.s.opts.Infof("aileron: %s has no credential bound, so its operations will be refused; "+
			"bind one with: aileron binding setup %s", fqn, fqn)
	}
}

// grants returns what connectors grant with the credentials of the chosen
// bindings, and remembers connectors as the installed ones. The plane redacts
// every secret that the session ever held: one that was revoked or replaced may
// still be in a response.
func (l *loader) grants(connectors []*spec.Connector, chosen bindings) (*proxy.Grants, error) {
	index, err := spec.NewIndex(connectors)
	if err != nil {
		return nil, hint.New(fmt.Errorf("combine the installed connectors: %w", err),
			"remove one of the two with: aileron connector remove FQN")
	}
	l.renewed = nil
	pinned := map[string]bindings{}
	if chosen != nil {
		pinned = l.choosePinned()
	}
	locked := l.vault().LockedForAll() || len(chosen)+len(pinned) > 0 && !l.vault().Unlocked()
	bound := map[spec.FQN]proxy.Bound{}
	if !locked {
		if bound, err = l.openCredentials(connectors, chosen); err != nil {
			return nil, err
		}
	}
	if l.unread.vault {
		clear(bound)
	}
	ofActions, err := l.pinnedGrants(pinned, locked)
	if err != nil {
		return nil, err
	}
	l.connectors, l.grantedActions = connectors, l.listActions()
	l.granted = l.listGranted(connectors, chosen)
	set := scrub.NewSet(slices.Collect(maps.Values(l.secrets)))
	l.redacts.Store(set)
	return &proxy.Grants{
		Index: index, Bound: bound, Locked: locked, Scrub: set,
		Unreadable: l.unread.connectors, VaultUnreadable: l.unread.vault,
		Actions: l.actions, Pinned: ofActions,
	}, nil
}

// openCredentials returns the credentials of bindings. One that was revoked just
// now, or cannot be read, is left out.
func (l *loader) openCredentials(connectors []*spec.Connector, chosen bindings) (map[spec.FQN]proxy.Bound, error) {
	bound := map[spec.FQN]proxy.Bound{}
	for fqn, b := range chosen {
		cred, err := l.vault().Credential(b.Name)
		if errors.Is(err, vault.ErrNotBound) || l.unread.addVault(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("open the credential %s: %w", b.Name, err)
		}
		bound[fqn] = l.bind(b, cred)
		usernames := []string{cred.Username}
		for _, c := range connectors {
			if c.FQN == fqn {
				usernames = append(usernames, c.Usernames()...)
			}
		}
		secret := bound[fqn].Credential.Secret.Reveal()
		_, printed := command.Of(cred)
		for _, username := range usernames {
			if l.s.opts.Grants != nil || printed { // it may be another one every hour, for months
				l.redactLatest(b.Name+" "+username, username, secret)
				continue
			}
			l.redact(secret, username)
		}
	}
	return bound, nil
}

// redact adds a secret to those that stay redacted. The username of Basic
// credentials is part of what their Base64 looks like at its beginning.
func (l *loader) redact(secret, username string) {
	l.secrets[username+"\x00"+secret] = scrub.Credential{Secret: []byte(secret), Username: username}
}

// withAllowed returns connectors with one more for [Options.Allow], if that names a host. A host that an installed
// connector names is decided by the connector: with strict set that is an error, and the host is left out otherwise.
func (l *loader) withAllowed(connectors []*spec.Connector, strict bool) ([]*spec.Connector, error) {
	// A connector that could not be read may have been kept from the last load, and so may this one.
	connectors = slices.DeleteFunc(slices.Clone(connectors), func(c *spec.Connector) bool {
		return c.FQN == local.SessionFQN
	})
	if len(l.s.opts.Allow) == 0 {
		return connectors, nil
	}
	index, err := spec.NewIndex(connectors)
	if err != nil {
		return connectors, nil //nolint:nilerr // it is reported where the grants are made
	}
	var hosts []string
	for _, text := range l.s.opts.Allow {
		h, err := spec.ParseHost(text)
		if err != nil {
			return nil, hint.New(fmt.Errorf("allow the host %s: %w", text, err), "--allow takes HOST or HOST:PORT")
		}
		switch {
		case !h.Wildcard && index.Covers(h.Name, h.Port) && strict:
			return nil, hint.New(fmt.Errorf("allow the host %s: an installed connector names it, and decides what is allowed",
				h),
				"leave it out of --allow; a refused request is allowed with: aileron allow ID")
		case h.Wildcard || !index.Covers(h.Name, h.Port):
			if !slices.Contains(hosts, text) {
				hosts = append(hosts, text)
			}
		}
	}
	if len(hosts) == 0 {
		return connectors, nil
	}
	c, err := local.Host(hosts)
	if err != nil {
		return nil, fmt.Errorf("allow the hosts %v: %w", hosts, err)
	}
	return append(connectors, c), nil
}

// selected returns those of all installed connectors that the session uses. The error names one that is not among them,
// of [Options.Connectors] or [Options.Versions]: a session does not begin with less than was asked for.
func (l *loader) selected(all []*spec.Connector) ([]*spec.Connector, error) {
	for _, fqn := range slices.Sorted(maps.Keys(l.s.opts.Versions)) {
		version, versions := l.s.opts.Versions[fqn], versionsOf(all, fqn)
		if !slices.Contains(versions, version) && len(versions) > 0 {
			return nil, hint.New(fmt.Errorf("use the connector %s@%s: that version is not installed", fqn, version),
				"installed: %s", strings.Join(versions, ", "))
		}
	}
	used := l.used(store.InForce(all, l.s.opts.Versions))
	for _, fqn := range l.s.opts.Connectors {
		if !slices.ContainsFunc(used, func(c *spec.Connector) bool { return c.FQN == fqn }) {
			return nil, hint.New(fmt.Errorf("use the connector %s: it is not installed", fqn),
				"see what is installed with: aileron connector list")
		}
	}
	return used, nil
}

// versionsOf returns the installed versions of a connector, the lowest first.
func versionsOf(all []*spec.Connector, fqn spec.FQN) (versions []string) {
	for _, c := range all {
		if c.FQN == fqn {
			versions = append(versions, c.Version)
		}
	}
	return versions
}

// maxNoted is how many connectors the line about versions names.
const maxNoted = 8

// noteVersions prints in one line which version is in force of connectors with several.
func (l *loader) noteVersions(all, inForce []*spec.Connector) {
	var noted []string
	for _, c := range inForce {
		if versions := versionsOf(all, c.FQN); len(versions) > 1 {
			noted = append(noted, fmt.Sprintf("%s %s (of %s)", c.FQN, c.Version, strings.Join(versions, ", ")))
		}
	}
	if more := len(noted) - maxNoted; more > 0 {
		noted = append(noted[:maxNoted], fmt.Sprintf("and %d more", more))
	}
	if len(noted) > 0 {
		l.s.opts.Infof("aileron: several versions are installed; in force: %s; another with --connector FQN@VERSION",
			strings.Join(noted, "; "))
	}
}

// used returns those of the connectors that the session uses.
func (l *loader) used(connectors []*spec.Connector) []*spec.Connector {
	only := l.s.opts.Connectors
	if only == nil {
		return connectors
	}
	var used []*spec.Connector
	for _, c := range connectors {
		if slices.Contains(only, c.FQN) {
			used = append(used, c)
		}
	}
	return used
}
