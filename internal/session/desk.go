package session

import (
	"context"
	"fmt"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/internal/approvals"
	"github.com/ALRubinger/aileron/proxy/approval"
)

// Desk is a surface on which a person decides what waits in the sessions of a home.
type Desk struct {
	home, surface string
	open          func(home string) (*audit.Log, error)
}

// NewDesk returns a desk, whose decisions have the name of the surface in the log. open opens the log for what is
// decided in no session.
func NewDesk(home, surface string, open func(home string) (*audit.Log, error)) Desk {
	return Desk{home, surface, open}
}

// List returns [AllApprovals] of the home.
func (d Desk) List(ctx context.Context) ([]approval.Question, error) {
	return AllApprovals(ctx, d.home)
}

// Find returns the question of an id, with its body.
func (d Desk) Find(ctx context.Context, id string) (approval.Question, error) {
	return FindApproval(ctx, d.home, id, true)
}

// Decide decides about a question, and returns it.
func (d Desk) Decide(ctx context.Context, q approval.Question, what approval.Decision) (approval.Question, error) {
	what.Surface = d.surface
	return DecideApproval(ctx, d.home, q.SessionID, q.ID, what)
}

// TakeBack revokes the decision of a question: for always, or of its session.
func (d Desk) TakeBack(ctx context.Context, q approval.Question) error {
	var err error
	if q.For == approval.Always {
		err = approvals.Revoke(ctx, d.home, q, d.surface, func() (*audit.Log, error) { return d.open(d.home) })
	} else {
		err = RevokeApproval(ctx, d.home, q.SessionID, q.ID, d.surface)
	}
	if err != nil {
		return fmt.Errorf("revoke the approval %s: %w", q.ID, err)
	}
	return nil
}
