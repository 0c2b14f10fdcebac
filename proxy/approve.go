package proxy

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/ALRubinger/aileron/proxy/approval"
	"github.com/ALRubinger/aileron/proxy/budget"
	"github.com/ALRubinger/aileron/proxy/judge"
	"github.com/ALRubinger/aileron/spec"
)

// DefaultHold is how long a request is held for an approval. Common clients wait for a minute or longer.
const DefaultHold = 55 * time.Second

const (
	// maxDigested is the longest body that is read before a person has decided. A longer one stays unread behind its
	// first [approval.MaxShown] bytes.
	maxDigested = 1 << 20
	// minRead is the least time for a body to come that is read before a person has decided.
	minRead = 5 * time.Second
	// heldCost is what a held request takes of the session's memory, beside its body and what any exchange does
	// ([wire.Exchange]), of which it does not use what is for the upstream.
	heldCost = 512
)

// retryApproval is after how many seconds a request that waits for an approval should be sent again.
const retryApproval = 30

// ApprovalsPath is the endpoint of the session's API that has the state of an approval, with its id behind it.
const ApprovalsPath = "/v1/approvals/"

// needsApproval reports whether a person has to approve the exchange's request. byBody is whether that is so unless a
// condition for its body fails.
func (x *Exchange) needsApproval() (asks, byBody bool) {
	if ask := x.p.cfg.AskFirst; ask != nil &&
		ask(Asked{x.match.Operation, x.target, x.request.Header, x.decision.Doubtful}) {
		return true, false
	}
	op := x.match.Operation
	switch {
	case op == nil:
		return false, false
	case op.Approval == spec.ApprovalWhen && !x.decision.Doubtful:
		return judge.TargetAsks(op, x.match.Params, x.target.Query, x.request.Header,
			x.request.Body != nil && x.request.Body != http.NoBody)
	}
	return op.Approval != spec.ApprovalNone && op.Approval != "", false
}

// awaitApproval holds a request until a person has approved it, and denies it if that takes too long. It has no
// credential meanwhile, and no intent: nothing of it is sent.
func (x *Exchange) awaitApproval() *Denial {
	asks, byBody := x.needsApproval()
	if !asks && x.over == nil {
		return nil
	}
	if x.shows {
		d := ReasonApproval.Deny("%s asks for an approval itself, and is no preview of another request then", x.what())
		d.advice = noSurface
		return d
	}
	until := time.Now().Add(x.p.cfg.Hold)
	ctx, cancel := context.WithCancelCause(x.request.Context())
	defer cancel(nil)
	defer context.AfterFunc(x.p.draining, func() { cancel(errDraining) })()
	hold := x.p.budget.Conn().Hold(func() { cancel(budget.ErrShed) })
	if d := x.awaitBudget(ctx, hold, until); d != nil || !asks {
		return d
	}
	if byBody {
		x.hold = hold
		body, whole, d := x.prefetch(ctx, until)
		if d != nil || whole && !judge.BodyAsks(x.match.Operation, x.target.Query, x.request.Header, body) {
			return d
		}
	}
	if x.p.cfg.Approvals == nil {
		d := ReasonApproval.Deny("%s asks for an approval", x.what())
		d.advice = noSurface
		return d
	}
	if d := x.denyUnbound(); d != nil {
		return d
	}
	r, d := x.approvalRequest()
	if d != nil {
		return d
	}
	if rule := x.p.cfg.Approvals.Ruled(r.Subject); rule != nil { // its body need not be read
		if passes, d := x.follow(ctx, rule, r, until); passes || d != nil {
			return d
		}
	}
	if x.hold = hold; !x.hold.Take(heldCost) {
		return DenyMemory()
	}
	if d := x.readBody(ctx, &r, until); d != nil {
		return d
	}
	if d := x.denyUnmatched(&r); d != nil {
		return d
	}
	x.hold.Stall(0)
	for {
		if passes, d := x.ask(ctx, r, until); passes || d != nil {
			x.hold.Move(0) // it stands still no more
			return d
		}
	}
}

// denyUnbound denies a request for which there is no credential: no person is asked about what is denied afterwards.
func (x *Exchange) denyUnbound() *Denial {
	if !x.credentialed() {
		return nil
	}
	_, d := x.grants.Credential(x.match.Operation)
	return d
}

// noSurface is what a denial means where no person can be asked.
var noSurface = &advice{false, "There is no way to approve here, so do not retry."}

// errDraining is the cause with which a held request ends when the session does.
var errDraining = errors.New("the session is ending")

// ask asks for an approval of the exchange's request. It may neither pass nor be denied: an equal request has used the
// approval up.
func (x *Exchange) ask(ctx context.Context, r approval.Request, until time.Time) (passes bool, _ *Denial) {
	ticket, err := x.p.cfg.Approvals.Ask(ctx, r)
	switch {
	case errors.Is(err, approval.ErrFull):
		return false, ReasonApprovals.Deny("%s needs an approval, and too many others wait for one, or did of late", x.what())
	case errors.Is(err, approval.ErrClosed):
		return false, ReasonDraining.Deny("the session is ending")
	case err != nil && ctx.Err() == nil:
		return false, ReasonAudit.Deny("the audit log cannot be written")
	case err != nil:
		return false, denyHeld(ctx)
	}
	return x.follow(ctx, ticket, r, until)
}

// follow waits for what is decided about a request, and does that.
func (x *Exchange) follow(ctx context.Context, ticket *approval.Ticket, r approval.Request, until time.Time,
) (passes bool, d *Denial) {
	defer ticket.Leave()
	state := ticket.Wait(ctx, until)
	if ctx.Err() != nil {
		return false, denyHeld(ctx)
	}
	switch state {
	case approval.Approved:
		x.asked = &r.Subject
		if d = x.regrant(); d == nil && !ticket.Use() {
			x.asked = nil
			return false, nil
		}
		if d == nil {
			x.passedBy(ticket.ID())
			return true, nil
		}
	case approval.Denied:
		d = ReasonApprovalDenied.Deny("the user denied %s", x.what())
	case approval.Expired:
		d = ReasonDraining.Deny("the session is ending")
	default:
		d = ReasonApproval.Deny("%s waits for the user's approval %s", x.what(), ticket.ID())
		if r.Streams {
			d = ReasonApproval.Deny("%s was not approved in time, and its body of more than %d bytes can be approved only "+
				"while it is sent", x.what(), maxDigested)
		}
	}
	d.Approval = ticket.ID()
	return false, d
}

// passedBy records an approval by which the request passes, which may need several: of budgets, then of the operation.
func (x *Exchange) passedBy(id string) {
	if earlier, ok := x.row.Fields["approval_id"].(string); ok {
		all, _ := x.row.Fields["earlier_approvals"].([]string)
		x.SetField("earlier_approvals", append(all, earlier))
	}
	x.SetField("approval_id", id)
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

// what returns what the exchange asks for, in words of the connector alone.
func (x *Exchange) what() string {
	if x.over != nil {
		return "more of the budget (" + x.over.Error() + ")"
	}
	if op := x.match.Operation; op != nil {
		return op.Tool + " " + op.Name
	}
	return "the request"
}

// regrant makes what is granted now the grants of an exchange that was held: a credential may have been revoked since,
// or bound anew, the vault locked, or a connector or an action removed. The approval is not used up if it denies.
func (x *Exchange) regrant() *Denial {
	now := x.p.grants.Load()
	if pin := x.grants.pin; pin != "" {
		now = now.Pinned[pin]
	}
	if now == nil || now != x.grants && !now.Index.Equal(x.grants.Index) {
		return ReasonApproval.Deny("what this session may do changed while %s waited; the next such request is decided "+
			"by that", x.what())
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
	bound, d := now.Credential(op)
	if d != nil {
		return d
	}
	return x.denySwapped(bound)
}

// denySwapped denies a request that was approved with another credential than the one that it would be sent with.
func (x *Exchange) denySwapped(b Bound) *Denial {
	if x.asked == nil || x.asked.Binding == b.Binding && x.asked.BindingID == b.ID {
		return nil
	}
	return ReasonApproval.Deny("the credential of %s is another than the one that was asked about", x.what())
}

// approvalRequest returns what a person is asked about, without the body: the request as it is to be sent.
func (x *Exchange) approvalRequest() (r approval.Request, _ *Denial) {
	t := x.target
	sent, d := x.stripped()
	if d != nil {
		return r, d
	}
	r = approval.Request{
		Method: t.Method, Scheme: t.Scheme, Host: t.Host, Port: int(t.Port), Path: t.Path, Query: sent.URL.RawQuery,
		Fields: fieldsShown(sent.Header), HTTPVersion: x.row.HTTPVersion,
		Source: string(x.at.Source), RequestID: x.row.RequestID,
	}
	if sent.URL.ForceQuery {
		r.Path += "?"
	}
	if op := x.match.Operation; op != nil {
		r.Subject = approval.Subject{Connector: string(op.Connector.FQN), Hash: op.Connector.Hash, Tool: op.Tool,
			Operation: op.Name}
		r.Version, r.Covers, r.AnyPath = op.Connector.Version, covers(op), op.Path.String() == ""
		if x.credentialed() {
			b := x.grants.Bound[op.Connector.FQN]
			r.Binding, r.BindingID = b.Binding, b.ID
		}
	}
	if r.WebSocket = x.websocket != nil; r.WebSocket {
		for _, name := range x.websocket.Protocols {
			r.Fields = append(r.Fields, approval.Value{Name: "Sec-Websocket-Protocol", Value: name})
		}
	}
	size := 0
	for _, f := range r.Fields {
		size += len(f.Name) + len(f.Value)
	}
	params := strings.Count(r.Query, "&") + len(x.match.Params)
	if len(r.Path)+len(r.Query) > approval.MaxTarget || params >= approval.MaxInputs || size > approval.MaxFields {
		d := ReasonApproval.Deny("%s needs an approval, and cannot be shown: a path and query of at most %d bytes with at "+
			"most %d parameters can, and header fields of at most %d bytes", x.what(), approval.MaxTarget, approval.MaxInputs,
			approval.MaxFields)
		d.advice = &advice{false, "Nothing was sent. Make the request smaller."}
		return r, d
	}
	r.Inputs = inputsShown(x.match.Params, r.Query)
	return r, nil
}

// stripped returns the request as the steps leave it that take from it: what a person is asked about is what is sent.
func (x *Exchange) stripped() (*http.Request, *Denial) {
	t := x.target
	r := &http.Request{Method: x.request.Method, Header: x.request.Header.Clone(), ProtoMajor: 1, ProtoMinor: 1,
		URL: &url.URL{RawQuery: t.Query, ForceQuery: t.Query == "" && strings.HasSuffix(x.request.RequestURI, "?")}}
	delete(r.Header, "Host")
	if err := apply(removingSteps, x, r); err != nil {
		return nil, denyStep(err)
	}
	return r, nil
}

// covers returns what an operation allows, in words of its connector.
func covers(op *spec.Operation) string {
	var hosts []string
	for _, h := range op.Hosts {
		hosts = append(hosts, h.String())
	}
	method, path := op.Method, op.Path.String()
	if method == "" || method == "*" {
		method = "any method"
	}
	if path == "" {
		path = ", any path"
	}
	return method + " " + strings.Join(hosts, " ") + path
}

// inputsShown returns the inputs of a request, as a server reads them.
func inputsShown(params []spec.Param, query string) []approval.Value {
	all := []approval.Value{}
	for _, p := range params {
		all = append(all, approval.Value{Name: p.Name, In: "path", Value: unescaped(p.Value, url.PathUnescape)})
	}
	for pair := range strings.SplitSeq(query, "&") {
		if name, value, _ := strings.Cut(pair, "="); pair != "" {
			all = append(all, approval.Value{Name: unescaped(name, url.QueryUnescape), In: "query",
				Value: unescaped(value, url.QueryUnescape)})
		}
	}
	return all
}

// readBody reads the body of a request that is to be asked about, or its beginning, as long as it may be held.
func (x *Exchange) readBody(ctx context.Context, r *approval.Request, until time.Time) *Denial {
	if x.sent == nil {
		return nil
	}
	body, whole, d := x.prefetch(ctx, until)
	if d != nil {
		return d
	}
	r.Streams, r.BodyBytes = !whole, int64(len(body))
	if r.BodySHA256 = approval.Digest(body); r.Streams {
		r.BodyBytes, r.BodySHA256 = x.request.ContentLength, ""
	}
	r.Body = body[:min(len(body), approval.MaxShown)]
	if x.content != nil && whole {
		r.Asks, r.Compared = x.content.String(), approval.Digest(x.content.Repeated(body))
	}
	return nil
}

// denyUnmatched denies a request without an input that its preview is compared with. Without it the service would not
// know what was approved.
func (x *Exchange) denyUnmatched(r *approval.Request) *Denial {
	op := x.match.Operation
	if op == nil || op.Preview == nil {
		return nil
	}
	for _, m := range op.Preview.Match {
		n := 0
		for _, in := range r.Inputs {
			if in.In == m.In && in.Name == m.Name {
				n++
			}
		}
		if m.In == spec.InBody && !r.Streams && int64(len(r.Body)) == r.BodyBytes {
			if judge.Has(op, x.request.Header, r.Body, m.Name) {
				n = 1
			}
		}
		if n != 1 {
			d := ReasonApproval.Deny("%s needs an approval, which is for one %s: name it as %s in the %s of the request",
				x.what(), m.Path, m.Name, m.In)
			d.advice = &advice{false, fmt.Sprintf("Nothing was sent. Send it again with that; %s %s returns it.",
				op.Preview.Operation.Tool, op.Preview.Operation.Name)}
			return d
		}
	}
	return nil
}

// prefetch reads up to [maxDigested] bytes of the request's body, which are sent all the same. whole is whether that is
// all. It can be called again.
func (x *Exchange) prefetch(ctx context.Context, until time.Time) (body []byte, whole bool, _ *Denial) {
	if x.sent == nil {
		return nil, true, nil
	}
	type result struct {
		body  []byte
		whole bool
		err   error
	}
	read := make(chan result, 1)
	sent, hold := x.sent, x.hold // x may be another's when the read ends
	x.p.reads.Go(func() {
		body, whole, err := sent.Prefetch(maxDigested, func(n int64) bool { return ctx.Err() == nil && hold.Take(n) })
		read <- result{body, whole, err}
	})
	timer := time.NewTimer(max(time.Until(until), minRead))
	defer timer.Stop()
	var got result
	select {
	case got = <-read:
	case <-timer.C:
		return nil, false, ReasonSlow.Deny("the request body did not come in the time for which a request waits for an " +
			"approval")
	case <-ctx.Done():
		return nil, false, denyHeld(ctx)
	}
	switch {
	case ctx.Err() != nil:
		return nil, false, denyHeld(ctx)
	case errors.Is(got.err, budget.ErrShed):
		return nil, false, DenyMemory()
	case got.err != nil:
		return nil, false, DenyBody(got.err)
	}
	return got.body, got.whole, nil
}

// unescaped returns a value as a server reads it, or as it is on the wire if that is not possible.
func unescaped(text string, unescape func(string) (string, error)) string {
	if plain, err := unescape(text); err == nil {
		return plain
	}
	return text
}

// volatileFields are request fields that are no part of what is approved: a service does not do another thing because
// of them, and two attempts of one request may differ in them. A field that is not here is shown and compared.
var volatileFields = volatile(
	// The form of the response, and whether a cache may have it: RFC 9110 section 12.5, RFC 9111 section 5.2.
	"Accept", "Accept-Charset", "Accept-Encoding", "Accept-Language", "Cache-Control", "Pragma", "Priority",
	"Grpc-Accept-Encoding",
	// The connection, and the length of the body, which is compared itself.
	"Connection", "Content-Length", "Expect", "Http2-Settings", "Keep-Alive", "Proxy-Authorization", "Proxy-Connection",
	"Te", "Trailer", "Transfer-Encoding", "Upgrade",
	// The program that sends it, and the page of a browser.
	"User-Agent", "Sec-Ch-Ua", "Sec-Ch-Ua-Mobile", "Sec-Ch-Ua-Platform", "Sec-Fetch-Dest", "Sec-Fetch-Mode",
	"Sec-Fetch-Site", "Sec-Fetch-User",
	// One attempt among others.
	"Date", "Grpc-Previous-Rpc-Attempts", "Grpc-Timeout", "Idempotency-Key", "Traceparent", "Tracestate",
	// The handshake of a WebSocket, which has a line of its own.
	"Sec-Websocket-Extensions", "Sec-Websocket-Key", "Sec-Websocket-Version", "Sec-Websocket-Protocol",
)

func volatile(names ...string) map[string]bool {
	all := make(map[string]bool, len(names))
	for _, name := range names {
		all[name] = true
	}
	return all
}

// hiddenValue stands for the value of a field that may be a credential of the sandbox's own.
const hiddenValue = "(hidden)"

// fieldsShown returns the request fields that may change what a request means, sorted.
func fieldsShown(h http.Header) []approval.Value {
	var all []approval.Value
	for name, values := range h {
		if volatileFields[name] {
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
