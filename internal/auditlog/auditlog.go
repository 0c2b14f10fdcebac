// Package auditlog turns the states of an audit log into messages: lines of a
// process's log while it runs, and hints of the errors with which commands end.
// A process that writes the log passes a [Reporter]'s methods to [audit.Open]:
//
//	r := auditlog.Reporter{Log: logger}
//	log, err := audit.Open(path, audit.Options{OnBroken: r.Broken, OnOutage: r.Outage})
//	if err != nil {
//		return auditlog.Hint(err)
//	}
package auditlog

import (
	"errors"
	"log/slog"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/internal/hint"
)

// Hint returns an error of reading or opening the log with what can be done
// about it. An error without a remedy of its own is returned as it is.
func Hint(err error) error {
	switch {
	case errors.As(err, new(*audit.SchemaError)):
		return hint.New(err, "use the aileron that wrote it, or another --home")
	case errors.Is(err, audit.ErrRowsAdded):
		return hint.New(err, "aileron audit verify lists them; to begin again, move audit.db, audit.head, "+
			".audit.witness and audit.checkpoints away together, and keep them")
	case audit.IsDamaged(err):
		return hint.New(err, "end the sessions of this home, then run: aileron audit recover (it keeps the old file)")
	case audit.IsLocked(err):
		return hint.New(err, "another process holds a lock on audit.db: end it and try again")
	}
	return err
}

// LossHint returns the error of a log's Close with what can be done about rows
// that are not in the log of a home. Any other error is returned as it is.
func LossHint(err error, home string) error {
	var lost *audit.LostError
	if !errors.As(err, &lost) {
		return err
	}
	switch {
	case errors.As(err, new(*audit.SchemaError)):
		return hint.New(err, "the next command of the aileron that wrote audit.db adds the rows")
	case lost.Kept > 0 && audit.IsDamaged(err):
		return hint.New(err, "run: aileron audit recover (it adds the rows, and keeps the old file)")
	case lost.Kept > 0 && audit.IsLocked(err):
		return hint.New(err, "end the process that holds a lock on audit.db: "+
			"the next aileron command that writes the log adds the rows")
	case lost.Kept > 0:
		return hint.New(err, "free space on the disk of %s: the next aileron command that writes the log adds the rows", home)
	}
	return hint.New(err, "check the disk of %s", home)
}

// Reporter logs what happens to a log while it is open for writing. Its methods
// are callbacks of [audit.Options].
type Reporter struct{ Log *slog.Logger }

// Broken logs that the log does not hold what it held.
func (r Reporter) Broken(row audit.Row) {
	r.Log.Warn("the audit log was changed: aileron audit verify lists how",
		"event", row.Event, "audit_id", row.ID, "reason", row.Reason, "found", row.Fields["found"],
		"expected_seq", row.Fields["expected_seq"], "expected_hash", row.Fields["expected_hash"],
		"next_seq", row.Fields["next_seq"])
}

// Outage logs that the log cannot be written, or only to the journal of the
// session, and that it can be again: one line each, however many requests are
// refused in between.
func (r Reporter) Outage(o audit.Outage) {
	if !o.Over {
		args := []any{"error", o.Err}
		if h := hint.Of(Hint(o.Err)); h != "" {
			args = append(args, "hint", h)
		}
		if o.Admitting {
			r.Log.Warn("the audit log is locked: requests are served until the journal of this session is full", args...)
			return
		}
		r.Log.Error("the audit log cannot be written: requests are refused until it can", args...)
		return
	}
	r.Log.Warn("the audit log can be written again",
		"refused_requests", o.Refused, "seconds", int(o.Until.Sub(o.Since).Seconds()))
}

// Lost logs that rows were given up.
func (r Reporter) Lost(rows int) {
	r.Log.Error("rows of the audit log are lost: the log accepts others, but not these", "rows", rows)
}

// Turn logs that rows are written without the turns that sessions of one home
// take.
func (r Reporter) Turn(err error) {
	h := "remove it: the next write makes it anew"
	if errors.Is(err, audit.ErrNoTurn) {
		h = "let the stopped process that has audit.lock open continue, or end it: fuser audit.lock"
	}
	r.Log.Warn("this session does not wait for its turn at audit.db: with many sessions, some may wait long",
		"error", err, "hint", h)
}

// Damaged logs that the log is damaged, or with nil that it no longer is.
func (r Reporter) Damaged(d *audit.DamageError) {
	if d == nil {
		r.Log.Warn("the audit log can be read again: requests are served")
		return
	}
	r.Log.Error("the audit log is damaged: requests are refused; end this session, then run: aileron audit recover",
		"row", d.Seq, "error", d.Err)
}
