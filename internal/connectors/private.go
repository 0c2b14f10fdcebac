package connectors

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/internal/home"
	"github.com/ALRubinger/aileron/spec"
	"github.com/ALRubinger/aileron/spec/catalog"
	"github.com/ALRubinger/aileron/spec/source"
	"github.com/ALRubinger/aileron/vault"
)

// Private is the right of a person to use their own bindings of the forges, to fetch what is not public.
type Private struct {
	Dir      *home.Dir
	Identity string // of the binding
	Open     func(ctx context.Context) (*vault.Vault, error)

	mu    sync.Mutex
	known map[source.API]source.Credential
}

// credential returns the credential for the API of a forge: that of the binding of the catalogue's connector for it, if
// that connector is installed and sends it to this host. Its use is recorded before it is handed out.
func (p *Private) credential(ctx context.Context, api source.API) (source.Credential, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if known, ok := p.known[api]; ok {
		return known, nil
	}
	fail := func(format string, args ...any) (source.Credential, error) {
		return source.Credential{}, fmt.Errorf("use your binding of %s: %w", api.Forge, fmt.Errorf(format, args...))
	}
	op, err := p.operation(api)
	if err != nil {
		return fail("%w", err)
	}
	locked, err := p.Dir.VaultOf()
	if err != nil {
		return fail("%w", err)
	}
	bound, err := locked.Bindings()
	if err != nil && !errors.Is(err, vault.ErrNotInitialised) {
		return fail("%w", err)
	}
	i := slices.IndexFunc(bound, func(b vault.Binding) bool {
		return b.Connector == string(op.Connector.FQN) && b.Identity == p.Identity && spec.Kind(b.Kind) == op.Injection.Kind
	})
	if i < 0 {
		err := fmt.Errorf("use your binding of %s: there is none with the identity %s", api.Forge, p.Identity)
		return source.Credential{}, hint.New(err, "aileron binding setup %s", api.Forge)
	}
	b := bound[i]
	if !b.Expires.IsZero() && b.Expires.Before(time.Now()) {
		err := fmt.Errorf("use your binding of %s: the token of %s has expired", api.Forge, b.Name)
		return source.Credential{}, hint.New(err, "aileron binding rebind %s", b.Name)
	}
	v, err := p.Open(ctx)
	if err != nil {
		return fail("%w", err)
	}
	c, err := v.Credential(b.Name)
	if err != nil {
		return fail("%w", err)
	}
	row := audit.Row{Event: audit.EventBindingUsed, Source: audit.SourceCLI, ConnectorFQN: b.Connector, Binding: b.Name,
		Host: api.Host}
	if err := appendRows(ctx, p.Dir, []audit.Row{row}); err != nil { // what is not recorded is not sent
		return fail("record it: %w", err)
	}
	p.Dir.Warnf("aileron: asking %s with the credential %s for what is not public", api.Host, b.Name)
	value := strings.ReplaceAll(op.Injection.Format, "{secret}", op.Injection.Compose(c.Username, c.Secret.Reveal()))
	known := source.NewCredential(op.Injection.Name, value)
	if p.known == nil {
		p.known = map[source.API]source.Credential{}
	}
	p.known[api] = known
	return known, nil
}

// operation returns the operation of the installed connector for a forge that sends its credential in a field to the
// host of the API: where a person has agreed that it goes.
func (p *Private) operation(api source.API) (*spec.Operation, error) {
	s, err := p.Dir.OpenStore()
	if err != nil {
		return nil, err
	}
	host := api.Host
	if !strings.Contains(host, ":") {
		host += ":443"
	}
	all, _ := s.Current()
	for _, c := range all {
		if c.FQN != catalog.FQN(api.Forge) {
			continue
		}
		for _, t := range c.Tools {
			for _, op := range t.Operations {
				if op.Injection != nil && op.Injection.In == "header" && slices.ContainsFunc(op.Hosts,
					func(h spec.HostPattern) bool { return !h.Wildcard && h.String() == host }) {
					return op, nil
				}
			}
		}
		return nil, fmt.Errorf("the connector %s sends no credential to %s", c.FQN, api.Host)
	}
	return nil, hint.New(fmt.Errorf("the connector %s is not installed", catalog.FQN(api.Forge)),
		"aileron connector install %[1]s; then: aileron binding setup %[1]s", api.Forge)
}
