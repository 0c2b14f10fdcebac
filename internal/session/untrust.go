package session

import (
	"context"
	"errors"
	"fmt"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/internal/hosttrust"
)

// untrust removes the session's root from the trust stores of this host. The control socket ends first: a process that
// got the root from it has the lock of the account until the record is written, so that none is added after this.
func (s *Session) untrust(ctx context.Context) error {
	if s.closeControl == nil || s.ca == nil || s.ca.Host() == nil {
		return nil
	}
	s.closeControl()
	l := hosttrust.Ledger{Home: s.opts.Home, Locks: s.opts.Locks, Source: audit.SourceLauncher,
		Append: func(ctx context.Context, r audit.Row) error { _, err := s.audit.Append(ctx, r); return err }}
	done, err := l.Untrust(context.WithoutCancel(ctx), s.id)
	if err != nil {
		err = fmt.Errorf("remove the session's root from the trust stores: %w", err)
	}
	return errors.Join(err, NotRemoved(s.id, done))
}

// NotRemoved returns an error that names the stores that may have a session's root although it was to be removed from
// them, nil if there are none.
func NotRemoved(id string, done []hosttrust.Outcome) error {
	var left []error
	for _, o := range done {
		if o.Left {
			left = append(left, hint.New(fmt.Errorf("%s: %s", o.Store, o.Error), "%s", o.Hint))
		}
	}
	if len(left) == 0 {
		return nil
	}
	return hint.New(fmt.Errorf("the root of the session %s may be in %d trust stores still: %w", id, len(left),
		errors.Join(left...)), "remove it with: aileron ca untrust %s", id)
}
