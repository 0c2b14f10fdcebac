package session

import (
	"fmt"
	"slices"

	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/spec"
)

// selected returns those of the connectors that the session uses. The error names one of [Options.Connectors] that is
// not among them: a session does not begin with less than was asked for.
func (l *loader) selected(connectors []*spec.Connector) ([]*spec.Connector, error) {
	used := l.used(connectors)
	for _, fqn := range l.s.opts.Connectors {
		if !slices.ContainsFunc(used, func(c *spec.Connector) bool { return c.FQN == fqn }) {
			return nil, hint.New(fmt.Errorf("use the connector %s: it is not installed", fqn),
				"see what is installed with: aileron connector list")
		}
	}
	return used, nil
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
