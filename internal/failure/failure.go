package failure

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"

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

// Usagef returns a usageError formatted as by [fmt.Errorf].
func Usagef(format string, args ...any) error { return UsageError{fmt.Errorf(format, args...)} }

// Usage returns err as an error in the arguments.
func Usage(err error) error { return UsageError{err} }

// Input returns err as that of a file that a person has named, with a reason.
func Input(err error, reason string) error { return InputError{err, reason} }
