package session

import (
	"fmt"
	"slices"

	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/spec"
	"github.com/ALRubinger/aileron/spec/local"
)

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
