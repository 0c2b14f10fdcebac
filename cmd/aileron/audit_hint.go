package main

import (
	"errors"
	"fmt"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/internal/hint"
)

// auditNotice prints what audit tail -f reports besides events.
func (a *app) auditNotice(n audit.Notice) {
	if n.Err == nil {
		a.sayf("aileron: %s", n.Text)
		return
	}
	text := fmt.Sprintf("%s: %v", n.Text, n.Err)
	if h := hint.Of(auditHint(n.Err)); h != "" {
		text += "; " + h
	}
	a.sayf("aileron: %s", text)
}

// auditHint adds a hint to the error of a log that cannot be read.
func auditHint(err error) error {
	switch {
	case errors.As(err, new(*audit.SchemaError)):
		return hint.New(err, "use the aileron that wrote it, or another --home")
	case audit.IsDamaged(err):
		return hint.New(err, "end the sessions of this home, then run: aileron audit recover (it keeps the old file)")
	case audit.IsLocked(err):
		return hint.New(err, "another process holds a lock on audit.db: end it and try again")
	}
	return err
}

// sessionAuditHint adds a hint to the error of a log with which no session can begin.
func sessionAuditHint(err error, home string) error {
	switch {
	case errors.As(err, new(*audit.SchemaError)):
		return auditHint(err)
	case audit.IsDamaged(err):
		return hint.New(err, "recover what can be read with: aileron audit recover (it keeps the old file);"+
			" or move a damaged audit.db away")
	}
	return hint.New(err, "without it no request is sent; check the disk, and the permissions of %s", home)
}
