package main

import (
	"context"
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
	changes := a.newChanges()
	err := changes.enact(ctx, c, act)
	return changes.close(err)
}

// changes are several changes of one command, each of which is recorded as by [app.enact]. They share the open audit
// log.
type changes struct {
	a    *app
	log  *audit.Log   // nil: no change was recorded yet
	last audit.Change // the last one that is in force
}

func (a *app) newChanges() *changes { return &changes{a: a} }

func (l *changes) enact(ctx context.Context, c change, act func() error) error {
	home, err := l.a.Home()
	if err != nil {
		return err
	}
	// A signal that comes now must not part the act from its rows.
	ctx = context.WithoutCancel(ctx)
	p, err := l.recordIntent(ctx, home, c)
	if err != nil {
		return hint.New(&unrecordedError{c.what, err},
			"nothing was changed; check the disk and the permissions of %s, then try again", home)
	}
	actErr := act()
	err = p.end(ctx, l.log, actErr)
	if actErr != nil {
		return actErr // its outcome is recorded now or later: it changed nothing
	}
	l.last = c.what
	return l.unrecorded(err)
}

// close closes the log, and returns err, or else the error of that.
func (l *changes) close(err error) error {
	if l.log == nil {
		return err
	}
	if closeErr := l.log.Close(); err == nil && l.last != "" {
		err = l.unrecorded(closeErr)
	}
	return err
}

// unrecorded adds to err that the last change is in force.
func (l *changes) unrecorded(err error) error {
	if err == nil {
		return nil
	}
	return hint.New(fmt.Errorf("%s is in force, and its outcome could not be recorded: %w", l.last, err),
		"check the disk; the next aileron command records it")
}

// recordIntent commits the intent of c.
func (l *changes) recordIntent(ctx context.Context, home string, c change) (*pendingChange, error) {
	if l.log == nil {
		log, err := l.a.openLog(home)
		if err != nil {
			return nil, err
		}
		l.log = log
	}
	return beginChange(ctx, l.a, l.log, home, c)
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
