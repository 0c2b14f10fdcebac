// Package failure has the classes, reasons and exit codes of errors. Open [Describe] first, which returns what an
// error is for the caller of aileron.
package failure

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/spec/action"
	"github.com/ALRubinger/aileron/spec/store"
	"github.com/ALRubinger/aileron/vault"
)

// Classed is implemented by errors that carry a class of CONTRACT section 4, for --json.
type Classed interface{ ErrorClass() string }

// Reasoned is implemented by errors that carry a reason, which is more specific than their class.
type Reasoned interface{ ErrorReason() string }

// Concerning is implemented by errors about a connector, FQN@VERSION.
type Concerning interface{ ErrorConnector() string }

// Coded is implemented by errors with an exit code of their own.
type Coded interface{ ExitCode() int }

// ReasonNotFound is the reason of errors about names for which there is nothing.
const ReasonNotFound = "not_found"

// Declined is returned where a person answered a question with no. It is the whole message.
type Declined string

func (d Declined) Error() string { return string(d) }

func (Declined) ErrorClass() string { return "approval_denied" }

func (Declined) ErrorReason() string { return "not_confirmed" }

// InputError is an error about a file that a person has named.
type InputError struct {
	error
	reason string
}

func (e InputError) Unwrap() error { return e.error }

func (InputError) ErrorClass() string { return "invalid_request" }

func (e InputError) ErrorReason() string { return e.reason }

// OfInput returns err as that of a file that a person has named: if there is none, it has the reason for that, else the
// given one, unless that is "". An error of the system, and one that has a class, are returned as they are.
func OfInput(err error, reason string) error {
	var class Classed
	fault, _ := hint.System(err)
	switch {
	case err == nil, fault != "", errors.As(err, &class):
		return err
	case errors.Is(err, fs.ErrNotExist):
		return InputError{err, ReasonNotFound}
	case reason == "":
		return err
	}
	return InputError{err, reason}
}

// NotFound reports whether err is about a name for which there is nothing.
func NotFound(err error) bool {
	for _, is := range []error{audit.ErrNotFound, store.ErrNotInstalled, vault.ErrNotBound, action.ErrNotAdded} {
		if errors.Is(err, is) {
			return true
		}
	}
	return false
}

// ReasonOf returns the reason of a failed change for its audit event, "failed" if the error has none.
func ReasonOf(err error) string {
	var r Reasoned
	if errors.As(err, &r) {
		return r.ErrorReason()
	}
	var c Classed
	if errors.As(err, &c) {
		return c.ErrorClass()
	}
	fault, _ := hint.System(err)
	return cmp.Or(fault, "failed")
}

// The reasons of errors about what a person has named and is not valid.
const (
	ReasonConnector = "connector_invalid"
	ReasonAction    = "action_unusable"
	ReasonDocument  = "document_invalid"
	ReasonKey       = "key_invalid"
	ReasonExists    = "already_exists"
)

// UsageError is an error in the arguments: exit code 2.
type UsageError struct{ error }

func (e UsageError) Unwrap() error { return e.error }

// Usagef returns a usage error formatted as by [fmt.Errorf].
func Usagef(format string, args ...any) error { return UsageError{fmt.Errorf(format, args...)} }

// Usage returns err as an error in the arguments.
func Usage(err error) error { return UsageError{err} }

// Input returns err as that of a file that a person has named, with a reason.
func Input(err error, reason string) error { return InputError{err, reason} }

// AsLine returns text as one line, whatever the errors below have put in: people read it, and grep.
func AsLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// Report is an error as the caller of aileron gets it.
type Report struct {
	Code          int // the exit code
	Class, Reason string
	Message, Hint string // one line each
	Connector     string // that it is about, as FQN@VERSION; "": none
}

// Describe returns what an error is for the caller of aileron.
func Describe(err error) Report {
	f := Report{Code: 1, Class: "connector_runtime_error"}
	if errors.As(err, new(UsageError)) {
		f.Code, f.Class = 2, "invalid_request"
	}
	var code Coded
	if errors.As(err, &code) {
		f.Code = code.ExitCode()
	}
	var class Classed
	if errors.As(err, &class) {
		f.Class = class.ErrorClass()
	}
	f.Reason = f.Class
	if NotFound(err) {
		f.Class, f.Reason = "invalid_request", ReasonNotFound
	}
	var reason Reasoned
	if errors.As(err, &reason) {
		f.Reason = reason.ErrorReason()
	}
	var concerning Concerning
	if errors.As(err, &concerning) {
		f.Connector = concerning.ErrorConnector()
	}
	fault, remedy := hint.System(err)
	if fault != "" && class == nil && reason == nil {
		f.Class, f.Reason = "unavailable", fault
	}
	if h := hint.Of(err); h != "" && !hint.Only(fault) {
		remedy = h
	}
	f.Message, f.Hint = AsLine(err.Error()), AsLine(remedy)
	return f
}
