package main

import (
	"errors"
	"fmt"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/internal/hint"
)

// auditOutage logs that the audit log cannot be written, and later that it can be again: one line each, for any number
// of requests that are refused in between.
func (a *app) auditOutage(o audit.Outage) {
	if !o.Over {
		args := []any{"error", o.Err}
		if h := hint.Of(auditHint(o.Err)); h != "" {
			args = append(args, "hint", h)
		}
		a.logger().Error("the audit log cannot be written: requests are refused until it can", args...)
		return
	}
	a.logger().Warn("the audit log can be written again",
		"refused_requests", o.Refused, "seconds", int(o.Until.Sub(o.Since).Seconds()))
}

// auditLost logs that rows are lost.
func (a *app) auditLost(rows int) {
	a.logger().Error("rows of the audit log are lost: the log takes others, and not these", "rows", rows)
}

// lostRows reports whether err is about rows that are neither in the log nor in a spill file.
func lostRows(err error) bool {
	var lost *audit.LostError
	return errors.As(err, &lost) && lost.Lost > 0
}

// lossHint adds a hint to the error of a log's Close.
func lossHint(err error, home string) error {
	var lost *audit.LostError
	closing := fmt.Errorf("close the session: %w", err)
	switch {
	case !errors.As(err, &lost):
		return err
	case errors.As(err, new(*audit.SchemaError)):
		return hint.New(closing, "the next command of the aileron that wrote audit.db adds the rows")
	case lost.Kept > 0 && audit.IsDamaged(err):
		return hint.New(closing, "run: aileron audit recover (it adds the rows, and keeps the old file)")
	case lost.Kept > 0 && audit.IsLocked(err):
		return hint.New(closing, "end the process that holds a lock on audit.db: "+
			"the next aileron command that writes the log adds the rows")
	case lost.Kept > 0:
		return hint.New(closing, "free space on the disk of %s: the next aileron command that writes the log adds the rows",
			home)
	}
	return hint.New(closing, "check the disk of %s", home)
}

// unrecorded returns the error with which aileron ends after a command that ended with code, where err is the error of
// closing its session. Rows that are not in the audit log turn a success into a failure; a failure of the command stays
// what it is.
func (a *app) unrecorded(code int, err error) error {
	switch {
	case err == nil && code == 0:
		return nil
	case err != nil && code == 0:
		return err
	case err != nil:
		_ = a.exitCode(err) // logs it; the code is the command's
	}
	return exitError{code}
}
