package session

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/internal/approvals"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/proxy"
	"github.com/ALRubinger/aileron/proxy/approval"
)

// newApprovals returns the queue of requests that wait for a person.
func (s *Session) newApprovals() *approval.Queue {
	rules := approvals.In(s.opts.Home)
	o := approval.Options{
		Session: s.id, Agent: s.opts.Agent, Record: s.recordApproval,
		Standing: rules.Cached(), Keep: rules.Keep, Drop: rules.Drop,
	}
	if s.opts.Notifier != nil {
		o.Opened = s.opts.Notifier.Opened
	}
	if d := s.opts.Decider; d != nil {
		d.Preview = s.withPreview
		d.Ask, d.Redact = s.leftToOwner, func(text string) string {
			redacted, _ := s.plane.Grants().Scrub.Text(text)
			return redacted
		}
		o.Opened = d.Opened
	}
	return approval.New(o)
}

// leftToOwner notifies the owner of a question that the decider has not decided, and notes why.
func (s *Session) leftToOwner(q approval.Question, why string) {
	s.opts.Log.Warn("an approval is left to the owner", "session", s.id, "approval", q.ID, "cause", why)
	if n := s.opts.Notifier; n != nil {
		n.Opened(q)
	}
}

// runApprovals follows what waits until ctx ends.
func (s *Session) runApprovals(ctx context.Context) {
	if n := s.opts.Notifier; n != nil {
		s.serving.Go(func() { n.Run(ctx) })
	}
	if d := s.opts.Decider; d != nil {
		s.serving.Go(func() { d.Run(ctx, s.approvals) })
	}
	s.approvals.Run(ctx)
}

// askFirst returns which requests need an approval besides those of operations that require it; nil: none do.
func (o Options) askFirst() func(proxy.Asked) bool {
	if len(o.Approve) == 0 {
		return nil
	}
	return func(a proxy.Asked) bool {
		if a.Operation != nil && o.Unasked != nil && o.Unasked(a.Operation.Connector) {
			return false
		}
		return slices.ContainsFunc(o.Approve, func(p approvals.Pattern) bool {
			return p.Covers(a.Target, a.Header, a.Doubtful)
		})
	}
}

// approvalRecordTimeout bounds the wait for the log.
const approvalRecordTimeout = 5 * time.Second

// recordApproval commits the row of an event about a question. Of a body it has the digest.
func (s *Session) recordApproval(ctx context.Context, event audit.Event, q *approval.Question,
	more map[string]any) error {
	fields := map[string]any{"approval_id": q.ID}
	maps.Copy(fields, more)
	if q.Hash != "" {
		fields["connector_hash"] = q.Hash
	}
	if event == audit.EventApprovalRequested {
		fields["request_id"] = q.RequestID
		if q.BodySHA256 != "" {
			fields["body_sha256"] = q.BodySHA256
		}
		if q.BodyBytes > 0 {
			fields["body_bytes"] = q.BodyBytes
		}
	}
	row := s.row(event, fields)
	row.ConnectorFQN, row.ConnectorVersion = q.Connector, q.Version
	row.Tool, row.Operation, row.Binding = q.Tool, q.Operation, q.Binding
	row.Method, row.Scheme, row.Host, row.Port, row.Path = q.Method, q.Scheme, q.Host, q.Port, proxy.RowPath(q.Path)
	if by, decided := fields["surface"]; decided && by != approvals.SurfaceDecider {
		row.Source = audit.SourceCLI
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), approvalRecordTimeout)
	defer cancel()
	_, err := tallied{s.audit, &s.tally}.Append(ctx, row)
	return err
}

// Approvals is what waits in a session, or was decided a moment ago, and what was decided for the session.
type Approvals struct {
	Questions []approval.Question `json:"questions"`
	Rules     []approval.Rule     `json:"rules"`
}

// withPreview returns a question with what the service says of it, where its operation has a preview and that came
// before ctx ended.
func (s *Session) withPreview(ctx context.Context, q approval.Question) approval.Question {
	s.previews.Fetch(ctx, q.ID)
	if now, ok := s.approvals.State(q.ID); ok {
		q.Preview = now.Preview
	}
	return q
}

// controlApprovals lists what waits. In a session that is still being opened nothing does. Only the question that the
// query names as whole has its body, and a preview is fetched for it; of others it is brief, if it was fetched before.
func (s *Session) controlApprovals(w http.ResponseWriter, r *http.Request) {
	select {
	case <-s.ready:
	default:
		respond(w, 200, Approvals{[]approval.Question{}, []approval.Rule{}})
		return
	}
	whole := r.URL.Query().Get("whole")
	if whole != "" {
		s.previews.Fetch(r.Context(), whole)
	}
	all := Approvals{s.approvals.List(), append([]approval.Rule{}, s.approvals.Rules()...)}
	for i := range all.Questions {
		q := &all.Questions[i]
		if q.ID == whole {
			continue
		}
		if q.Body = nil; q.Preview != nil {
			q.Preview = q.Preview.Brief()
		}
	}
	respond(w, 200, all)
}

// approvalRequest is what the owner asks of a session: to decide about a question, or to revoke.
type approvalRequest struct {
	approval.Decision
	Revoke bool `json:"revoke,omitempty"`
}

// controlDecide decides about a question, or takes a decision back.
func (s *Session) controlDecide(w http.ResponseWriter, r *http.Request) {
	var in approvalRequest
	if err := json.NewDecoder(io.LimitReader(r.Body, 64<<10)).Decode(&in); err != nil ||
		!in.Revoke && !slices.Contains(approval.Scopes(), in.For) || len(in.Surface) > 32 ||
		in.Surface == approvals.SurfaceDecider { // that is the session itself
		respondError(w, 400, "invalid_request", "malformed_request", "the body is no decision")
		return
	}
	id := r.PathValue("id")
	if in.Revoke {
		err := s.approvals.Revoke(r.Context(), id, in.Surface)
		if s.ledger.Lower(id); err != nil {
			respondDecision(w, err, approval.Question{})
			return
		}
		respond(w, 200, map[string]string{"id": id, "state": "revoked"})
		return
	}
	q, err := s.approvals.Decide(r.Context(), id, in.Decision)
	if err != nil {
		respondDecision(w, err, q)
		return
	}
	respond(w, 200, q)
}

// respondDecision writes the error of a decision.
func respondDecision(w http.ResponseWriter, err error, q approval.Question) {
	switch {
	case errors.Is(err, approval.ErrUnknown):
		respondError(w, 404, "invalid_request", "not_found", "there is no such approval")
	case errors.Is(err, approval.ErrDecided):
		text := "it is being decided elsewhere at this moment"
		if q.State != approval.Pending {
			text = "it is " + string(q.State) + " already"
		}
		if q.Surface != "" {
			text += " (" + q.Surface + ")"
		}
		respondError(w, 409, "invalid_request", "already_decided", text)
	case errors.Is(err, approval.ErrShown):
		respondError(w, 409, "invalid_request", "malformed_request", "it is not what was shown: look at it again")
	case errors.Is(err, approval.ErrNoObject):
		respondError(w, 400, "invalid_request", "malformed_request", err.Error())
	case errors.Is(err, approval.ErrClosed):
		respondError(w, 503, "unavailable", "draining", err.Error())
	case errors.Is(err, approval.ErrAnyPath), errors.Is(err, approval.ErrBudget):
		respondError(w, 400, "invalid_request", "malformed_request", err.Error())
	case q.State == approval.Denied:
		respondError(w, 503, "unavailable", "audit_unavailable", "it is denied, but that could not be recorded: "+err.Error())
	default:
		respondError(w, 503, "unavailable", "audit_unavailable", "it could not be recorded, or kept: "+err.Error())
	}
}

// ReadApprovals returns what waits in a running session of a home. Only the question whole has its body.
func ReadApprovals(ctx context.Context, home, id, whole string) (all Approvals, err error) {
	path := "/v1/approvals?" + url.Values{"whole": {whole}}.Encode()
	raw, err := controlClient{home: home, id: id}.call(ctx, "GET", path, nil)
	if err == nil {
		err = json.Unmarshal(raw, &all)
	}
	if err != nil {
		return all, fmt.Errorf("list the approvals of the session %s: %w", id, err)
	}
	return all, nil
}

// DecideApproval decides about a question of a running session, and returns it.
func DecideApproval(ctx context.Context, home, id, question string, d approval.Decision) (q approval.Question,
	err error) {
	raw, err := callApproval(ctx, home, id, question, approvalRequest{Decision: d})
	if err != nil {
		return q, hint.New(fmt.Errorf("decide about %s: %w", question, err), "see what waits with: aileron approval list")
	}
	return q, json.Unmarshal(raw, &q)
}

// RevokeApproval takes back what was decided in a running session.
func RevokeApproval(ctx context.Context, home, id, question, surface string) error {
	_, err := callApproval(ctx, home, id, question,
		approvalRequest{Decision: approval.Decision{Surface: surface}, Revoke: true})
	return err
}

func callApproval(ctx context.Context, home, id, question string, in approvalRequest) ([]byte, error) {
	if !audit.IsID(question) {
		return nil, approval.ErrUnknown
	}
	body, err := json.Marshal(in)
	if err != nil {
		return nil, err
	}
	return controlClient{home: home, id: id}.call(ctx, "POST", "/v1/approvals/"+question, bytes.NewReader(body))
}
