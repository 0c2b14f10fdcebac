// Package hint attaches to an error what its reader can do about it.
//
// Call [New] where the remedy is known, which is often far below the command
// that prints the error; the command asks [Of] and prints the hint on its own:
//
//	return hint.New(fmt.Errorf("open the vault: %w", err), "create one with: aileron vault init")
//
// A hint is no part of the error's text, so wrapping an error neither repeats
// its hint nor hides it. A hint is printed: it must not contain a secret.
package hint

import (
	"errors"
	"fmt"
)

// hinted is an error with its hint.
type hinted struct {
	error
	hint string
}

// Unwrap returns the error without its hint.
func (h hinted) Unwrap() error { return h.error }

// New returns err with a hint formatted as by [fmt.Sprintf]. The text of err,
// and what [errors.Is] and [errors.As] find in it, are unchanged. New returns
// nil if err is nil.
func New(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return hinted{err, fmt.Sprintf(format, args...)}
}

// Of returns the hint of err, or "" if it has none. If several errors in the
// tree of err have one, the outermost wins: it knows more of what was asked.
func Of(err error) string {
	var h hinted
	if !errors.As(err, &h) {
		return ""
	}
	return h.hint
}
