package cli

import (
	"context"
	"fmt"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/internal/auditlog"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/internal/session"
)

// Lister returns what lists the sessions of a home.
func (a *App) Lister(home string) session.Lister {
	return session.Lister{Home: home, OpenLog: a.AuditReader, Warn: a.AuditNotice}
}

// FindSession returns the home, and its session with that id, or with an id that begins so.
func (a *App) FindSession(ctx context.Context, id string) (home string, s session.State, err error) {
	if home, err = a.Home(); err == nil {
		s, err = a.Lister(home).Find(ctx, id)
	}
	return home, s, err
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
