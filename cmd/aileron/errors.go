package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/internal/launch"
	"github.com/ALRubinger/aileron/internal/session"
	"github.com/ALRubinger/aileron/internal/termsafe"
	"github.com/ALRubinger/aileron/spec/action"
	"github.com/ALRubinger/aileron/spec/store"
	"github.com/ALRubinger/aileron/vault"
)

// exitError ends the program with a code, and prints nothing: what the command printed is the verdict.
type exitError struct{ code int }

func (e exitError) Error() string { return fmt.Sprintf("exit status %d", e.code) }

// classed is implemented by errors that carry a class of CONTRACT section 4, for --json.
type classed interface{ ErrorClass() string }

// reasoned is implemented by errors that carry a reason, which is more specific than their class.
type reasoned interface{ ErrorReason() string }

// coded is implemented by errors with an exit code of their own.
type coded interface{ ExitCode() int }

// reasonNotFound is the reason of errors about names for which there is nothing.
const reasonNotFound = "not_found"

// The reasons of errors about what a person has named and is not valid.
const (
	reasonConnector = "connector_invalid"
	reasonAction    = "action_unusable"
	reasonDocument  = "document_invalid"
	reasonKey       = "key_invalid"
	reasonExists    = "already_exists"
)

// declined is returned where a person answered a question with no. It is the whole message.
type declined string

func (d declined) Error() string     { return string(d) }
func (declined) ErrorClass() string  { return "approval_denied" }
func (declined) ErrorReason() string { return "not_confirmed" }

// inputError is an error about a file that a person has named.
type inputError struct {
	error
	reason string
}

func (e inputError) Unwrap() error       { return e.error }
func (inputError) ErrorClass() string    { return "invalid_request" }
func (e inputError) ErrorReason() string { return e.reason }

// ofInput returns err as that of a file that a person has named: if there is none, it has the reason for that, else the
// given one, unless that is "". An error of the system, and one that has a class, are returned as they are.
func ofInput(err error, reason string) error {
	var class classed
	fault, _ := hint.System(err)
	switch {
	case err == nil, fault != "", errors.As(err, &class):
		return err
	case errors.Is(err, fs.ErrNotExist):
		return inputError{err, reasonNotFound}
	case reason == "":
		return err
	}
	return inputError{err, reason}
}

// notFound reports whether err is about a name for which there is nothing.
func notFound(err error) bool {
	for _, is := range []error{audit.ErrNotFound, store.ErrNotInstalled, vault.ErrNotBound, action.ErrNotAdded} {
		if errors.Is(err, is) {
			return true
		}
	}
	return false
}

// exitCode prints err, and returns the exit code of CONTRACT section 1. It is the only place that does either.
func (a *app) exitCode(err error) int {
	var exit exitError
	var ended *launch.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return exit.code
	case errors.As(err, &ended) && ended.Err == nil:
		return ended.Code
	}
	f := describeFailure(err)
	if a.json {
		f.printJSON(a.stderr)
	} else {
		f.print(a.stderr, a.messagesOnTerminal(), a.messageColumns())
	}
	return f.code
}

// failure is an error as the caller of aileron gets it.
type failure struct {
	code          int
	class, reason string
	message, hint string // one line each
}

func describeFailure(err error) failure {
	f := failure{code: 1, class: "connector_runtime_error"}
	if errors.As(err, new(usageError)) {
		f.code, f.class = 2, "invalid_request"
	}
	if errors.Is(err, session.ErrStopped) {
		f.code = session.StoppedCode
	}
	var code coded
	if errors.As(err, &code) {
		f.code = code.ExitCode()
	}
	var class classed
	if errors.As(err, &class) {
		f.class = class.ErrorClass()
	}
	f.reason = f.class
	if notFound(err) {
		f.class, f.reason = "invalid_request", reasonNotFound
	}
	var reason reasoned
	if errors.As(err, &reason) {
		f.reason = reason.ErrorReason()
	}
	fault, remedy := hint.System(err)
	if fault != "" && class == nil && reason == nil {
		f.class, f.reason = "unavailable", fault
	}
	if h := hint.Of(err); h != "" && !hint.Only(fault) {
		remedy = h
	}
	f.message, f.hint = asLine(err.Error()), asLine(remedy)
	return f
}

// asLine returns text as one line, whatever the errors below have put in: people read it, and grep.
func asLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// print writes what failed, why, and what to do about it: in one line, as scripts expect it (CONTRACT section 1), and
// on a terminal with the hint on a line of its own, in lines of so many columns.
func (f failure) print(w io.Writer, terminal bool, columns int) {
	text, more := termsafe.Line("aileron: "+f.message), ""
	if f.hint != "" {
		more = termsafe.Line("hint: " + f.hint)
	}
	switch {
	case terminal && more != "":
		text = fitted(text, columns) + "\n" + fitted(more, columns)
	case more != "":
		text += "; " + more
	default:
		text = fitted(text, columns)
	}
	fmt.Fprintln(w, text)
}

// printJSON writes the failure as the object of CONTRACT section 4.
func (f failure) printJSON(w io.Writer) {
	message := f.message
	if f.hint != "" {
		message += " (" + f.hint + ")"
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"error": map[string]any{
		"class": f.class, "message": message, "requested": "", "granted": []string{},
		"audit_id": "", "retriable": false, "details": map[string]string{"reason": f.reason},
	}})
}

// reasonOf returns the reason of a failed change for its audit event, "failed" if the error has none.
func reasonOf(err error) string {
	var r reasoned
	if errors.As(err, &r) {
		return r.ErrorReason()
	}
	var c classed
	if errors.As(err, &c) {
		return c.ErrorClass()
	}
	fault, _ := hint.System(err)
	return cmp.Or(fault, "failed")
}
