package cli

import (
	"errors"
	"fmt"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/internal/auditlog"
	"github.com/ALRubinger/aileron/internal/connectors"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/internal/session"
	"github.com/ALRubinger/aileron/spec"
	"github.com/ALRubinger/aileron/spec/catalog"
)

// Lister returns what lists the sessions of a home.
func (a *App) Lister(home string) session.Lister {
	return session.Lister{Home: home, OpenLog: a.AuditReader, Warn: a.AuditNotice}
}

// AuditNotice prints what audit tail -f reports besides events.
func (a *App) AuditNotice(n audit.Notice) {
	if n.Err == nil {
		a.Infof("aileron: %s", n.Text)
		return
	}
	text := fmt.Sprintf("%s: %v", n.Text, n.Err)
	if h := hint.Of(auditlog.Hint(n.Err)); h != "" {
		text += "; " + h
	}
	a.Infof("aileron: %s", text)
}

// ConnectorsToMatch returns the installed connectors, or those with the names of among: installed, else of the
// catalogue.
func (a *App) ConnectorsToMatch(among []string) ([]*spec.Connector, error) {
	s, err := a.OpenStore()
	if err != nil {
		return nil, err
	}
	installed, broken := s.Current()
	if len(broken) > 0 {
		return nil, hint.New(fmt.Errorf("verify the installed connectors: %w", errors.Join(broken...)),
			"install the connector again, or remove it with: aileron connector remove FQN")
	}
	if len(among) == 0 {
		return installed, nil
	}
	var chosen []*spec.Connector
	for _, name := range among {
		fqn, err := connectors.NewNames(a.Dir).Resolve(name)
		if err != nil {
			return nil, err
		}
		c := ByName(installed)[string(fqn)]
		if entry, ok := catalog.Find(string(fqn)); ok && c == nil {
			c = entry.Connector
		}
		if c == nil {
			return nil, connectors.NotInstalled(name, fqn)
		}
		chosen = append(chosen, c)
	}
	return chosen, nil
}

// ByName returns connectors by their names.
func ByName(connectors []*spec.Connector) map[string]*spec.Connector {
	named := make(map[string]*spec.Connector, len(connectors))
	for _, c := range connectors {
		named[string(c.FQN)] = c
	}
	return named
}
