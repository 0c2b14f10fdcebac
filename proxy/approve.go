package proxy

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/ALRubinger/aileron/proxy/approval"
	"github.com/ALRubinger/aileron/proxy/budget"
	"github.com/ALRubinger/aileron/spec"
)

// DefaultHold is how long a request is held for an approval. Common clients wait for a minute or longer.
const DefaultHold = 55 * time.Second

const (
	// maxDigested is the longest body that is read before a person has decided. A longer one stays unread behind its
	// first [approval.MaxShown] bytes.
	maxDigested = 1 << 20
	// heldCost is what a held request takes of the session's memory, beside its body.
	heldCost = 8 << 10
)

// retryApproval is after how many seconds a request that waits for an approval should be sent again.
const retryApproval = 30

// ApprovalsPath is the endpoint of the session's API that has the state of an approval, with its id behind it.
const ApprovalsPath = "/v1/approvals/"

// needsApproval reports whether a person has to approve the exchange's request.
func (x *Exchange) needsApproval() bool {
	p := x.p
	if p.cfg.Approvals == nil {
		return false // Decide has denied it
	}
	op := x.match.Operation
	if op != nil && op.Approval == "required" {
		return true
	}
	return p.cfg.AskFirst != nil && p.cfg.AskFirst(op, x.row.Method, x.target)
}

// awaitApproval holds a request until a person has approved it, and denies it if that takes too long. It has no
// credential meanwhile, and no intent: nothing of it is sent.
func (x *Exchange) awaitApproval() *Denial {
	if !x.needsApproval() {
		return nil
	}
	if x.credentialed() {
		if _, d := x.grants.Credential(x.match.Operation); d != nil {
			return d // what it would be denied for afterwards
		}
	}
	ctx, cancel := context.WithCancelCause(x.request.Context())
	defer cancel(nil)
	defer context.AfterFunc(x.p.draining, func() { cancel(errDraining) })()
	x.hold = x.p.budget.Conn().Hold(func() { cancel(budget.ErrShed) })
	if !x.hold.Take(heldCost) {
		return DenyMemory()
	}
	r, d := x.approvalRequest()
	if d != nil {
		return d
	}
	x.hold.Stall(0)
	until := time.Now().Add(x.p.cfg.Hold)
	for {
		if passes, d := x.ask(ctx, r, until); passes || d != nil {
			return d
		}
	}
}

// errDraining is the cause with which a held request ends when the session does.
var errDraining = errors.New("the session is ending")

// ask asks for an approval of the exchange's request. It may neither pass nor be denied: an equal request has used the
// approval up.
func (x *Exchange) ask(ctx context.Context, r approval.Request, until time.Time) (passes bool, _ *Denial) {
	what := x.asked()
	ticket, err := x.p.cfg.Approvals.Ask(ctx, r)
	switch {
	case errors.Is(err, approval.ErrFull):
		return false, ReasonApprovals.Deny("%s needs an approval, and %d others wait for one already", what, approval.MaxOpen)
	case errors.Is(err, approval.ErrClosed):
		return false, ReasonDraining.Deny("the session is ending")
	case err != nil && ctx.Err() == nil:
		return false, ReasonAudit.Deny("the audit log cannot be written")
	case err != nil:
		return false, denyHeld(ctx)
	}
	defer ticket.Leave()
	state := ticket.Wait(ctx, until)
	if ctx.Err() != nil {
		return false, denyHeld(ctx)
	}
	var d *Denial
	switch state {
	case approval.Approved:
		if d = x.regrant(); d == nil && !ticket.Use() {
			return false, nil
		}
		if d == nil {
			x.SetField("approval_id", ticket.ID())
			return true, nil
		}
	case approval.Denied:
		d = ReasonApprovalDenied.Deny("the user denied %s", what)
	case approval.Expired:
		d = ReasonDraining.Deny("the session is ending")
	default:
		d = ReasonApproval.Deny("%s waits for the user's approval %s", what, ticket.ID())
		if r.Streams {
			d = ReasonApproval.Deny("%s was not approved in time, and its body of more than %d bytes can be approved only "+
				"while it is sent", what, maxDigested)
		}
	}
	d.Approval = ticket.ID()
	return false, d
}

// denyHeld returns the denial of a held request whose context has ended.
func denyHeld(ctx context.Context) *Denial {
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, errDraining):
		return ReasonDraining.Deny("the session is ending")
	case errors.Is(cause, budget.ErrShed):
		return DenyMemory()
	}
	return ReasonClientGone.Deny("the client went away while its request waited for an approval")
}

// asked returns what the exchange asks for, in words of the connector alone.
func (x *Exchange) asked() string {
	if op := x.match.Operation; op != nil {
		return op.Tool + " " + op.Name
	}
	return "the request"
}

// regrant makes what is granted now the grants of an exchange that was held: a credential may have been revoked since,
// the vault locked, or a connector removed. The approval is not used up if it denies.
func (x *Exchange) regrant() *Denial {
	now := x.p.now(x.grants)
	if now != x.grants && !now.Index.Equal(x.grants.Index) {
		return ReasonApproval.Deny("what the connectors grant changed while %s waited; the next such request is decided "+
			"by that", x.asked())
	}
	x.grants = now
	op := x.match.Operation
	if op == nil {
		return nil
	}
	if reason := now.Unreadable[op.Connector.FQN]; reason != "" {
		return reason.Deny("the connector %s could not be read", op.Connector.FQN)
	}
	if op.Injection == nil {
		return nil
	}
	_, d := now.Credential(op)
	return d
}

// approvalRequest returns what a person is asked about. It reads the body, or its beginning.
func (x *Exchange) approvalRequest() (r approval.Request, d *Denial) {
	t := x.target
	r = approval.Request{
		Method: t.Method, Scheme: t.Scheme, Host: t.Host, Port: int(t.Port), Path: t.Path, Query: t.Query,
		Inputs: []approval.Value{}, Fields: x.fieldsShown(), HTTPVersion: x.row.HTTPVersion,
		Source: string(x.at.Source), RequestID: x.row.RequestID,
	}
	if op := x.match.Operation; op != nil {
		r.Subject = approval.Subject{Connector: string(op.Connector.FQN), Hash: op.Connector.Hash, Tool: op.Tool,
			Operation: op.Name}
		r.Version = op.Connector.Version
		if x.credentialed() {
			r.Binding = x.grants.Bound[op.Connector.FQN].Binding
		}
	}
	for _, p := range x.match.Params {
		r.Inputs = append(r.Inputs, approval.Value{Name: p.Name, In: "path", Value: unescaped(p.Value, url.PathUnescape)})
	}
	for pair := range strings.SplitSeq(t.Query, "&") {
		if name, value, _ := strings.Cut(pair, "="); pair != "" {
			r.Inputs = append(r.Inputs, approval.Value{Name: unescaped(name, url.QueryUnescape), In: "query",
				Value: unescaped(value, url.QueryUnescape)})
		}
	}
	if x.sent == nil {
		return r, nil
	}
	body, whole, err := x.sent.Prefetch(maxDigested, x.hold.Take)
	switch {
	case errors.Is(err, budget.ErrShed):
		return r, DenyMemory()
	case err != nil:
		return r, DenyBody(err)
	}
	r.Streams, r.BodyBytes = !whole, int64(len(body))
	if r.BodySHA256 = approval.Digest(body); r.Streams {
		r.BodyBytes, r.BodySHA256 = x.request.ContentLength, ""
	}
	r.Body = body[:min(len(body), approval.MaxShown)]
	return r, nil
}

// unescaped returns a value as a server reads it, or as it is on the wire if that is not possible.
func unescaped(text string, unescape func(string) (string, error)) string {
	if plain, err := unescape(text); err == nil {
		return plain
	}
	return text
}

// volatileFields are request fields that differ between two attempts of one request, or say how its response is to be
// sent. They are no part of what is approved.
var volatileFields = map[string]bool{
	"Accept": true, "Accept-Charset": true, "Accept-Encoding": true, "Accept-Language": true, "Cache-Control": true,
	"Connection": true, "Content-Length": true, "Date": true, "Expect": true, "Grpc-Accept-Encoding": true,
	"Grpc-Previous-Rpc-Attempts": true, "Grpc-Timeout": true, "Http2-Settings": true, "Idempotency-Key": true,
	"Keep-Alive": true, "Pragma": true, "Priority": true, "Proxy-Authorization": true, "Proxy-Connection": true,
	"Te": true, "Traceparent": true, "Tracestate": true, "Trailer": true, "Transfer-Encoding": true, "Upgrade": true,
	"User-Agent": true,
}

// hiddenValue stands for the value of a field that may be a credential of the sandbox's own.
const hiddenValue = "(hidden)"

// fieldsShown returns the request fields that are sent and may change what the request means, sorted.
func (x *Exchange) fieldsShown() []approval.Value {
	h := x.request.Header
	if x.credentialed() {
		h = h.Clone()
		_ = x.acceptedFields().ModifyRequest(&http.Request{Header: h}) // it never fails
	}
	var all []approval.Value
	for name, values := range h {
		if volatileFields[name] || strings.HasPrefix(name, "Sec-") && name != "Sec-Websocket-Protocol" {
			continue
		}
		for _, value := range values {
			if spec.NamesCredential(name) {
				value = hiddenValue + " " + approval.Digest([]byte(value))
			}
			all = append(all, approval.Value{Name: name, Value: value})
		}
	}
	slices.SortStableFunc(all, func(a, b approval.Value) int { return strings.Compare(a.Name, b.Name) })
	return all
}
