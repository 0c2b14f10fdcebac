package session

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/spec"
	"github.com/ALRubinger/aileron/spec/store"
)

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
