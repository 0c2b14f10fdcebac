package cli

import (
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
