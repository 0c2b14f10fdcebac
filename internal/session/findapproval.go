package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ALRubinger/aileron/internal/approvals"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/proxy/approval"
)

// listTimeout bounds the wait for what waits in one session.
const listTimeout = 5 * time.Second

// AllApprovals returns the questions of the running sessions of a home, and the decisions in force for them and for
// always, which are questions without a request. No question has its body ([FindApproval]). What cannot be read is in
// the error, and hides nothing else.
func AllApprovals(ctx context.Context, home string) (all []approval.Question, err error) {
	running := Running(home)
	read, faults := make([]Approvals, len(running)), make([]error, len(running))
	var reading sync.WaitGroup
	for i, id := range running { // side by side: one that does not respond holds up no other
		reading.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, listTimeout)
			defer cancel()
			if read[i], faults[i] = ReadApprovals(ctx, home, id, ""); faults[i] != nil && !Alive(home, id) {
				faults[i] = nil
			}
		})
	}
	reading.Wait()
	for _, of := range read {
		for _, r := range of.Rules { // in place of the question that it was made for
			of.Questions = slices.DeleteFunc(of.Questions, func(q approval.Question) bool { return q.ID == r.ID })
		}
		all = append(all, of.Questions...)
		for _, r := range of.Rules {
			all = append(all, ruleQuestion(r))
		}
	}
	rules, err := approvals.In(home).List()
	faults = append(faults, err)
	for _, r := range rules {
		all = slices.DeleteFunc(all, func(q approval.Question) bool { return q.ID == r.ID })
		all = append(all, ruleQuestion(r))
	}
	slices.SortFunc(all, approval.Older)
	return all, errors.Join(faults...)
}

// ruleQuestion returns a decision for more than one request in the form of a question.
func ruleQuestion(r approval.Rule) approval.Question {
	q := approval.Question{ID: r.ID, SessionID: r.Session, State: approval.Denied, Requested: r.Made, For: r.For,
		Surface: r.Surface, Decided: &r.Made, Request: approval.Request{Subject: r.Subject, Version: r.Version,
			Method: r.Method, Host: r.Host, Inputs: []approval.Value{}}}
	if r.Approve {
		q.State = approval.Approved
	}
	return q
}

// UnknownApprovalError is returned for an id that nothing has which waits, or was decided.
type UnknownApprovalError struct{ id string }

func (e *UnknownApprovalError) Error() string {
	return fmt.Sprintf("no approval has the id %.26q", e.id)
}

// ErrorClass is the class of CONTRACT section 4.
func (*UnknownApprovalError) ErrorClass() string { return "invalid_request" }

// ErrorReason is the reason of CONTRACT section 4.
func (*UnknownApprovalError) ErrorReason() string { return "not_found" }

// minPrefix is the shortest beginning of an id by which something is decided.
const minPrefix = 12

// FindApproval returns one of [AllApprovals] by its id, or by the beginning of it if that is unambiguous, and to decide
// also long enough. It has its body.
func FindApproval(ctx context.Context, home, id string, decide bool) (approval.Question, error) {
	if decide && len(id) < minPrefix {
		return approval.Question{}, hint.New(&UnknownApprovalError{id}, "name it with %d characters or more: "+
			"aileron approval list", minPrefix)
	}
	all, err := AllApprovals(ctx, home)
	var found []approval.Question
	for _, q := range all {
		if id != "" && strings.HasPrefix(q.ID, strings.ToUpper(id)) {
			found = append(found, q)
		}
	}
	switch len(found) {
	case 1:
		return withBody(ctx, home, found[0])
	case 0:
		if whole := strings.ToUpper(id); decide && approvals.In(home).Broken(whole) {
			return approval.Question{ID: whole, State: approval.Denied, For: approval.Always}, nil // to be revoked
		}
		unknown := hint.New(&UnknownApprovalError{id}, "see what waits with: aileron approval list")
		return approval.Question{}, errors.Join(unknown, err)
	}
	return approval.Question{}, hint.New(fmt.Errorf("the ids of %d approvals begin with %.26q", len(found), id),
		"see the ids with: aileron approval list")
}

// withBody returns a question with the body of its request, while it waits.
func withBody(ctx context.Context, home string, q approval.Question) (approval.Question, error) {
	if q.State != approval.Pending {
		return q, nil
	}
	all, err := ReadApprovals(ctx, home, q.SessionID, q.ID)
	for _, whole := range all.Questions {
		if whole.ID == q.ID {
			return whole, nil
		}
	}
	if err == nil {
		err = &UnknownApprovalError{q.ID}
	}
	return q, err
}
