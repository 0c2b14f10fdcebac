package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/internal/auditlog"
	"github.com/ALRubinger/aileron/internal/config"
	"github.com/ALRubinger/aileron/internal/hint"
)

// change is what a command changes of what is in force: a connector, a binding, the vault. All of its audit events have
// the columns and fields of about.
type change struct {
	what   audit.Change
	about  audit.Row
	before string // digest of what the act replaces, "" where there is none
}

// enact records the intent of c, calls act, and records the outcome. Without a committed intent it does not call act.
// If aileron is killed in between, the next command records the outcome: see [app.settleChanges].
func (a *app) enact(ctx context.Context, c change, act func() error) error {
	home, err := a.Home()
	if err != nil {
		return err
	}
	// A signal that comes now must not part the act from its rows.
	ctx = context.WithoutCancel(ctx)
	log, p, err := a.recordIntent(ctx, home, c)
	if err != nil {
		return hint.New(&unrecordedError{c.what, err},
			"nothing was changed; check the disk and the permissions of %s, then try again", home)
	}
	actErr := act()
	err = p.end(ctx, log, actErr)
	if closeErr := log.Close(); err == nil {
		err = closeErr
	}
	if actErr != nil {
		return actErr // its outcome is recorded now or later: it changed nothing
	}
	if err != nil {
		return hint.New(fmt.Errorf("%s is in force, and its outcome could not be recorded: %w", c.what, err),
			"check the disk; the next aileron command records it")
	}
	return nil
}

// openLog opens the audit log of the home for appending. A config.toml that cannot be read is not a reason to refuse to
// lock the vault: the log is then flushed after every row.
func (a *app) openLog(home string) (*audit.Log, error) {
	conf, err := config.Read(home)
	if err != nil {
		a.infof("aileron: warning: %v", err)
		conf.Audit.Durability = "full"
	}
	opts := audit.Options{Durability: conf.Audit.Durability, OnBroken: auditlog.Reporter{Log: a.logger()}.Broken}
	return audit.Open(filepath.Join(home, "audit.db"), opts)
}

// recordIntent opens the log and commits the intent of c.
func (a *app) recordIntent(ctx context.Context, home string, c change) (*audit.Log, *pendingChange, error) {
	log, err := a.openLog(home)
	if err != nil {
		return nil, nil, err
	}
	p, err := beginChange(ctx, a, log, home, c)
	if err != nil {
		return nil, nil, errors.Join(err, log.Close())
	}
	return log, p, nil
}

// unrecordedError is returned for a change that was not made because its intent could not be recorded.
type unrecordedError struct {
	what  audit.Change
	cause error
}

func (e *unrecordedError) Error() string {
	return fmt.Sprintf("%s was not done, because it could not be recorded in the audit log: %v", e.what, e.cause)
}

func (e *unrecordedError) Unwrap() error { return e.cause }

// ErrorClass and ErrorReason are for --json.
func (*unrecordedError) ErrorClass() string  { return "unavailable" }
func (*unrecordedError) ErrorReason() string { return "audit_unavailable" }

// row returns a row of the change with further fields.
func (c change) row(id string, event audit.Event, reason string, fields map[string]any) audit.Row {
	r := c.about
	r.ID, r.Event, r.Reason, r.Source = id, event, reason, audit.SourceCLI
	r.Fields = maps.Clone(c.about.Fields)
	if r.Fields == nil {
		r.Fields = map[string]any{}
	}
	maps.Copy(r.Fields, fields)
	return r
}
