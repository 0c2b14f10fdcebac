package store

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"github.com/ALRubinger/aileron/internal/hint"
)

// UnreadableError is returned for a connector that could not be read, so that it
// is not known whether it was changed. Err has the reason of the system.
type UnreadableError struct {
	Hash string
	File string // "" for its directory
	Err  error
}

func (e *UnreadableError) Error() string {
	what := "the installed connector " + e.Hash[:min(len(e.Hash), 19)]
	if e.File != "" {
		return fmt.Sprintf("%s could not be read: %s: %v", what, e.File, e.Err)
	}
	return fmt.Sprintf("%s could not be read: %v", what, e.Err)
}

func (e *UnreadableError) Unwrap() error { return e.Err }

// ErrorClass and ErrorReason return those in the error object of --json.
func (*UnreadableError) ErrorClass() string  { return "unavailable" }
func (*UnreadableError) ErrorReason() string { return "connector_unreadable" }

// ListError is returned when the store could not be listed.
type ListError struct{ Err error }

func (e *ListError) Error() string {
	return fmt.Sprintf("the connector store could not be read: %v", e.Err)
}

func (e *ListError) Unwrap() error { return e.Err }

// ErrorClass and ErrorReason return those in the error object of --json.
func (*ListError) ErrorClass() string  { return "unavailable" }
func (*ListError) ErrorReason() string { return "store_unreadable" }

// EntryError is the reason why an installed connector cannot be used.
type EntryError struct {
	Entry Entry
	Err   error
}

func (e *EntryError) Error() string { return e.Entry.String() + ": " + e.Err.Error() }
func (e *EntryError) Unwrap() error { return e.Err }

// ErrorConnector returns the connector in the error object of --json.
func (e *EntryError) ErrorConnector() string { return e.Entry.name() }

// unreadable reports whether an error of reading a file comes from the system. Any
// other error is about what was found there.
func unreadable(err error) bool {
	return errors.As(err, new(syscall.Errno)) && !errors.Is(err, fs.ErrNotExist)
}

// Unreadable reports whether err is about a connector, or a whole store, that
// could not be read, and the reason of that: whether it was changed is not
// known. Any other error of a connector reports what was found in it.
func Unreadable(err error) (reason string, unreadable bool) {
	var entry *UnreadableError
	var all *ListError
	switch {
	case errors.As(err, &entry):
		return entry.ErrorReason(), true
	case errors.As(err, &all):
		return all.ErrorReason(), true
	}
	return "", false
}

// Hint returns err, which is about installed connectors that cannot be used,
// with a hint. It may wrap an error that joins those of several connectors.
func Hint(err error) error {
	var failed []error
	if joined, ok := errors.Unwrap(err).(interface{ Unwrap() []error }); ok {
		failed = joined.Unwrap()
	} else {
		failed = []error{err}
	}
	for _, e := range failed {
		if _, unreadable := Unreadable(e); !unreadable && e != nil {
			return hint.New(err, "install the connector again from its source, "+
				"or remove it with: aileron connector remove FQN")
		}
	}
	_, remedy := hint.System(err)
	if remedy == "" {
		remedy = "check the disk and the rights on the home"
	}
	return hint.New(err, "nothing is known to be changed: %s", remedy)
}
