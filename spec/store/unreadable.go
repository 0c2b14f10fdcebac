package store

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
)

// UnreadableError is an installed connector that could not be read: whether it
// was changed is not known. Err has the system's reason.
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

// ErrorClass and ErrorReason are those of CONTRACT section 4.
func (*UnreadableError) ErrorClass() string  { return "unavailable" }
func (*UnreadableError) ErrorReason() string { return "connector_unreadable" }

// StoreError is a store of which it could not be read what is installed.
type StoreError struct{ Err error }

func (e *StoreError) Error() string {
	return fmt.Sprintf("the connector store could not be read: %v", e.Err)
}

func (e *StoreError) Unwrap() error { return e.Err }

// ErrorClass and ErrorReason are those of CONTRACT section 4.
func (*StoreError) ErrorClass() string  { return "unavailable" }
func (*StoreError) ErrorReason() string { return "store_unreadable" }

// EntryError is an installed connector that cannot be used, and why.
type EntryError struct {
	Entry Entry
	Err   error
}

func (e *EntryError) Error() string { return e.Entry.String() + ": " + e.Err.Error() }
func (e *EntryError) Unwrap() error { return e.Err }

// unreadable reports whether an error of reading a file is the system's. Any
// other one says what was found there.
func unreadable(err error) bool {
	return errors.As(err, new(syscall.Errno)) && !errors.Is(err, fs.ErrNotExist)
}
