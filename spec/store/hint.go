package store

import (
	"errors"

	"github.com/ALRubinger/aileron/internal/hint"
)

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
