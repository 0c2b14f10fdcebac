package cli

import (
	"context"

	"github.com/ALRubinger/aileron/internal/auditview"
	"github.com/ALRubinger/aileron/internal/session"
)

// Lister returns what lists the sessions of a home.
func (a *App) Lister(home string) session.Lister {
	return session.Lister{Home: home, OpenLog: a.AuditReader, Warn: auditview.Notice(a.Console)}
}

// FindSession returns the home, and its session with that id, or with an id that begins so.
func (a *App) FindSession(ctx context.Context, id string) (home string, s session.State, err error) {
	if home, err = a.Home(); err == nil {
		s, err = a.Lister(home).Find(ctx, id)
	}
	return home, s, err
}
