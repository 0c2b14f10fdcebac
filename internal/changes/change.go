// Package changes records what a command changes of what is in force: the intent before the act, and its outcome after
// it. Open [Recorder.Enact] first. If the command is killed in between, [Recorder.SettleChanges] records the outcome
// when the next one starts.
package changes

import (
	"context"
	"fmt"
	"maps"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/internal/home"
)

// Recorder records changes of what is in force in the home's audit log.
type Recorder struct {
	*home.Dir
}

// Change is what a command changes of what is in force: a connector, a binding, the vault. All of its audit events have
// the columns and fields of about.
type Change struct {
	What   audit.Change
	About  audit.Row
	Before string // digest of what the act replaces, "" where there is none
}

// Enact records the intent of c, calls act, and records the outcome. Without a committed intent it does not call act.
// If aileron is killed in between, the next command records the outcome: see [Recorder.SettleChanges].
func (r *Recorder) Enact(ctx context.Context, c Change, act func() error) error {
	batch := r.NewBatch()
	err := batch.Enact(ctx, c, act)
	return batch.Close(err)
}

// Batch is several changes of one command, each of which is recorded as by [Recorder.Enact]. They share the open audit
// log.
type Batch struct {
	r    *Recorder
	log  *audit.Log   // nil: no change was recorded yet
	last audit.Change // the last one that is in force
}

func (r *Recorder) NewBatch() *Batch { return &Batch{r: r} }

func (l *Batch) Enact(ctx context.Context, c Change, act func() error) error {
	home, err := l.r.Home()
	if err != nil {
		return err
	}
	// A signal that comes now must not part the act from its rows.
	ctx = context.WithoutCancel(ctx)
	p, err := l.recordIntent(ctx, home, c)
	if err != nil {
		return hint.New(&unrecordedError{c.What, err},
			"nothing was changed; check the disk and the permissions of %s, then try again", home)
	}
	actErr := act()
	err = p.End(ctx, l.log, actErr)
	if actErr != nil {
		return actErr // its outcome is recorded now or later: it changed nothing
	}
	l.last = c.What
	return l.unrecorded(err)
}

// Close closes the log, and returns err, or else the error of that.
func (l *Batch) Close(err error) error {
	if l.log == nil {
		return err
	}
	if closeErr := l.log.Close(); err == nil && l.last != "" {
		err = l.unrecorded(closeErr)
	}
	return err
}

// unrecorded adds to err that the last change is in force.
func (l *Batch) unrecorded(err error) error {
	if err == nil {
		return nil
	}
	return hint.New(fmt.Errorf("%s is in force, and its outcome could not be recorded: %w", l.last, err),
		"check the disk; the next aileron command records it")
}

// recordIntent commits the intent of c.
func (l *Batch) recordIntent(ctx context.Context, home string, c Change) (*PendingChange, error) {
	if l.log == nil {
		log, err := l.r.OpenLog(home)
		if err != nil {
			return nil, err
		}
		l.log = log
	}
	return BeginChange(ctx, l.r.Locks, l.log, home, c)
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
func (c Change) row(id string, event audit.Event, reason string, fields map[string]any) audit.Row {
	r := c.About
	r.ID, r.Event, r.Reason, r.Source = id, event, reason, audit.SourceCLI
	r.Fields = maps.Clone(c.About.Fields)
	if r.Fields == nil {
		r.Fields = map[string]any{}
	}
	maps.Copy(r.Fields, fields)
	return r
}
