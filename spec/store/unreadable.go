package store

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
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

// unreadable reports whether an error of reading a file comes from the system. Any
// other error is about what was found there.
func unreadable(err error) bool {
	return errors.As(err, new(syscall.Errno)) && !errors.Is(err, fs.ErrNotExist)
}
