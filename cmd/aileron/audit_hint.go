package main

import (
	"fmt"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/internal/auditlog"
	"github.com/ALRubinger/aileron/internal/hint"
)

// auditNotice prints what audit tail -f reports besides events.
func (a *app) auditNotice(n audit.Notice) {
	if n.Err == nil {
		a.infof("aileron: %s", n.Text)
		return
	}
	text := fmt.Sprintf("%s: %v", n.Text, n.Err)
	if h := hint.Of(auditlog.Hint(n.Err)); h != "" {
		text += "; " + h
	}
	a.infof("aileron: %s", text)
}
