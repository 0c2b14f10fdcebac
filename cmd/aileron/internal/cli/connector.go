package cli

import (
	"context"

	"github.com/ALRubinger/aileron/internal/auditlog"
	"github.com/ALRubinger/aileron/internal/connectors"
	"github.com/ALRubinger/aileron/internal/review"
)

// RecordedConnector returns the FQN that a short name stands for, which may be one that the log has events of and that
// was removed since. Any other text is returned as it is.
func (a *App) RecordedConnector(name string) (string, error) {
	if !connectors.IsShortName(name) {
		return name, nil
	}
	fqn, unknown := connectors.NewNames(a.Dir).Resolve(name)
	if !connectors.IsUnknown(unknown) {
		return string(fqn), unknown
	}
	l, err := a.AuditReader()
	if err != nil {
		return "", err
	}
	if l == nil {
		return "", unknown
	}
	defer l.Close()
	found, err := review.Connectors(context.Background(), l, name)
	switch {
	case err != nil:
		return "", auditlog.Hint(err)
	case len(found) == 0:
		return "", unknown
	case len(found) > 1:
		return "", connectors.AmbiguousName(name, found)
	}
	return found[0], nil
}
