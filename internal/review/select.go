package review

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/ALRubinger/aileron/audit"
)

// maxListed is how many ids an [AmbiguousError] lists.
const maxListed = 8

// AmbiguousError is returned for the beginning of several ids.
type AmbiguousError struct {
	What   string // they are ids of: events, or sessions
	Prefix string
	IDs    []string // the first of them
	More   bool     // there are others
}

func (e *AmbiguousError) Error() string {
	return fmt.Sprintf("the ids of several %s begin with %.26q", e.What, e.Prefix)
}

// List returns the ids as a text.
func (e *AmbiguousError) List() string {
	text := strings.Join(e.IDs, ", ")
	if e.More {
		text += ", …"
	}
	return text
}

// IsAmbiguous reports whether err is an [AmbiguousError].
func IsAmbiguous(err error) bool { return errors.As(err, new(*AmbiguousError)) }

func ambiguous(what, prefix string, ids []string) *AmbiguousError {
	return &AmbiguousError{what, prefix, ids[:min(len(ids), maxListed)], len(ids) > maxListed}
}

// FindRow returns the row whose id begins with prefix. The error is [audit.ErrNotFound] if there is none, and an
// [AmbiguousError] if there are several.
func FindRow(ctx context.Context, l Log, prefix string) (audit.Row, error) {
	rows, err := l.Find(ctx, prefix, maxListed+1)
	if err != nil {
		return audit.Row{}, err
	}
	if len(rows) == 1 {
		return rows[0], nil
	}
	var ids []string
	for _, r := range rows {
		ids = append(ids, r.ID)
	}
	return audit.Row{}, ambiguous("events", prefix, ids)
}

// Select completes a filter with what only the log knows: the session whose id begins with filter.Session, and the
// sessions of the agent so far, unless agent is empty. A beginning of no session is left as it is, and selects nothing.
// The error is an [AmbiguousError] if several sessions begin so.
func Select(ctx context.Context, l Log, filter *audit.Filter, agent string) (err error) {
	if agent != "" {
		if filter.Sessions, err = SessionsOf(ctx, l, agent); err != nil {
			return err
		}
	}
	if filter.Session == "" || audit.IsID(filter.Session) {
		return nil
	}
	found, err := SessionsWith(ctx, l, filter.Session)
	switch {
	case err != nil:
		return err
	case len(found) == 1:
		filter.Session = found[0]
	case len(found) > 1:
		return ambiguous("sessions", filter.Session, found)
	}
	return nil
}
