package proxy

import (
	"context"
	"io"
	"net/http"
	"time"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/proxy/modify"
	"github.com/ALRubinger/aileron/proxy/upstream"
	"github.com/ALRubinger/aileron/spec"
)

// Exchange is one request on its way, with the decision about it and the
// audit row that grows with it.
type Exchange struct {
	p          *Plane
	grants     *Grants
	request    *http.Request // the client's
	authority  Authority
	decision   Decision
	target     spec.Target // the decision's
	match      spec.Match  // the decision's; zero for passthrough
	started    time.Time
	row        audit.Row
	sent       *upstream.Body // the request body, when there is one
	redactions modify.Redactions
	fields     *fieldReader         // declared fields of the answer; nil: none
	packed     *modify.RejectPacked // judges the response's body; nil: it is not judged
	entered    bool                 // counted among the exchanges under way
	intended   bool                 // its intent is committed

	tunnel    context.Context   //nolint:containedctx // the life of the tunnel that it came by; nil: it came by none
	websocket *modify.WebSocket // the handshake that was asked for; nil: none was
}

// enter counts the exchange as under way, unless the plane drains or stays full.
func (x *Exchange) enter() *Denial {
	ctx := context.Background()
	if x.request != nil {
		ctx = x.request.Context()
	}
	switch x.p.under.enter(ctx) {
	case closed:
		return deny(reasonDraining, "the session is ending")
	case full:
		return deny(reasonOverload, "the session has too many requests under way")
	}
	x.entered = true
	return nil
}

func (x *Exchange) leave() {
	if x.entered {
		x.entered = false
		x.p.under.leave()
	}
}

// newExchange starts an exchange's row. Nothing is decided yet.
func (p *Plane) newExchange(door Door, source audit.Source, a Authority, scheme string, r *http.Request) *Exchange {
	x := &Exchange{p: p, grants: p.grants.Load(), request: r, authority: a, started: time.Now()}
	x.row = audit.Row{
		Event: audit.EventSandboxRejected, SessionID: p.cfg.Session, Source: source,
		Scheme: scheme, Host: a.Host, Port: int(a.Port),
		Fields: map[string]any{"request_id": audit.NewID()},
	}
	if door.Redirected {
		x.row.Fields["redirected"] = true
	}
	if r != nil {
		x.row.Method, x.row.HTTPVersion = r.Method, r.Proto
		x.row.Path = plainPath(r.RequestURI)
		if r.Body != nil && r.Body != http.NoBody {
			x.sent = upstream.NewBody(r.Body)
		}
	}
	return x
}

// question returns what Decide needs about the exchange's request.
func (x *Exchange) question(r *http.Request) Question {
	return Question{Index: x.grants.Index, Passthrough: x.p.cfg.Passthrough, Authority: x.authority, Scheme: x.row.Scheme,
		Method: r.Method, Target: r.RequestURI, Host: r.Host, Upgrade: x.asksForUpgrade(), Body: x.sent != nil}
}

// decided keeps the decision. From here on the row names the operation, if the
// request is one.
func (x *Exchange) decided(d Decision) {
	x.decision, x.target, x.match = d, d.Target, d.Match
	op := d.Match.Operation
	if op == nil {
		return
	}
	x.row.Event = audit.EventProxyRejected
	x.row.ConnectorFQN, x.row.ConnectorVersion = string(op.Connector.FQN), op.Connector.Version
	x.row.Tool, x.row.Operation = op.Tool, op.Name
	x.row.Path = d.Target.Path
	x.pathFields()
}

func (x *Exchange) credentialed() bool {
	return x.match.Operation != nil && x.match.Operation.Injection != nil
}

// route is how the exchange's request may travel upstream.
func (x *Exchange) route() upstream.Route {
	op := x.match.Operation
	how := upstream.Route{HTTP2: x.request.ProtoMajor == 2, Idempotent: op != nil && op.Idempotent}
	if x.credentialed() {
		how.Key = x.grants.keys[op.Connector.FQN]
	}
	return how
}

// admit denies what was decided against, and a WebSocket handshake that is not
// one by its form.
func (x *Exchange) admit() *Denial {
	if x.decision.Verdict != Allow && x.decision.Verdict != Passthrough {
		return x.decision.Denial
	}
	if op := x.match.Operation; op != nil {
		if reason := x.grants.Unreadable[op.Connector.FQN]; reason != "" {
			return deny(reason, "the connector %s could not be read", op.Connector.FQN)
		}
	}
	if x.asksForUpgrade() {
		return x.admitUpgrade()
	}
	return nil
}

// credential finds what the operation needs. An operation that needs one
// never goes without.
func (x *Exchange) credential() (*Bound, *Denial) {
	if !x.credentialed() {
		return nil, nil
	}
	fqn := x.match.Operation.Connector.FQN
	bound, ok := x.grants.Bound[fqn]
	switch {
	case ok && !bound.Credential.Secret.IsZero():
		x.row.Binding = bound.Binding
		return &bound, nil
	case x.grants.VaultUnreadable:
		return nil, deny(reasonVaultUnread, "the vault could not be read, so the credential of %s is out of reach", fqn)
	case x.grants.Locked:
		return nil, deny(reasonVaultLocked, "the vault is locked, so the credential of %s is out of reach", fqn)
	}
	d := deny(reasonUnbound, "no credential is bound for %s", fqn)
	d.Requested = "credential:" + string(x.match.Operation.Injection.Kind) + ":" + string(fqn)
	return nil, d
}

// intend commits the intent event. If it cannot be committed, the request is
// not sent.
func (x *Exchange) intend() *Denial {
	row := x.row
	row.Event = audit.EventProxyStarted
	ctx, cancel := context.WithTimeout(context.WithoutCancel(x.request.Context()), recordTimeout)
	defer cancel()
	if _, err := x.p.cfg.Audit.Append(ctx, row); err != nil {
		x.p.cfg.Log.Debug("the intent row could not be written", "error", err) // the log itself reports an outage, once
		return deny(reasonAudit, "the audit log cannot be written")
	}
	x.intended = true
	return nil
}

// recordTimeout bounds one wait for the audit log.
const recordTimeout = 5 * time.Second

// attribute puts the connector that names the host into a refusal's row: a
// filter by connector must show its refusals too.
func (x *Exchange) attribute() {
	if x.row.ConnectorFQN != "" || x.row.Host == "" {
		return
	}
	t := spec.Target{Host: x.row.Host, Port: uint16(x.row.Port), Method: x.row.Method, Path: x.row.Path} //nolint:gosec // a port
	if c := x.grants.Index.Naming(t); c != nil {
		x.row.ConnectorFQN, x.row.ConnectorVersion = string(c.FQN), c.Version
	}
}

// subject is what the hint of a denial is about: the connector to bind, or the
// binding to bind again.
func (x *Exchange) subject(reason Reason) string {
	switch reason {
	case reasonUnbound:
		return x.row.ConnectorFQN
	case reasonCredential:
		return x.row.Binding
	}
	return ""
}

// record commits the outcome row of a refusal, which is not said before.
func (x *Exchange) record() error {
	x.total()
	// The client may be gone; its row is written all the same.
	ctx, cancel := context.WithTimeout(context.Background(), recordTimeout)
	defer cancel()
	if _, err := x.p.cfg.Audit.Append(ctx, x.row); err != nil {
		x.p.cfg.Log.Debug("an outcome row could not be written", "error", err)
		return err
	}
	return nil
}

// note adds the outcome row of an exchange that took place, which nobody can
// take back: it may share the next commit.
func (x *Exchange) note() { x.noteAs(audit.NewID()) }

// noteAs is note for a row whose id is given.
func (x *Exchange) noteAs(id string) {
	x.total()
	x.row.ID = id
	ctx, cancel := context.WithTimeout(context.Background(), recordTimeout)
	defer cancel()
	if err := x.p.cfg.Audit.AppendSoon(ctx, x.row); err != nil {
		x.p.cfg.Log.Debug("an outcome row could not be written", "error", err) // the log counts it as lost
	}
}

// total puts the sums into the outcome row.
func (x *Exchange) total() {
	x.row.ID = audit.NewID()
	x.row.DurationUS = time.Since(x.started).Microseconds()
	if x.sent != nil {
		x.row.RequestBytes = x.sent.Sent()
	}
	x.row.Redactions = x.redactions.Total()
	if x.packed != nil && x.packed.Found() != "" {
		x.row.Fields["packed"] = string(x.packed.Found())
	}
}

// carried puts into the row that the request was sent.
func (x *Exchange) carried() {
	x.row.Event, x.row.Decision = audit.EventProxyProxied, audit.DecisionProxied
	if x.decision.Verdict == Passthrough {
		x.row.Event, x.row.Decision = audit.EventSandboxPassthrough, audit.DecisionPassthrough
	}
}

// failed records a request that brought no response. One that was sent, and
// whose client left before the response came, was proxied all the same.
func (x *Exchange) failed(d *Denial) *Denial {
	if d.Reason != reasonUndelivered {
		return x.reject(d)
	}
	defer x.leave()
	if x.shed() {
		d.Reason = reasonMemory
	}
	x.carried()
	x.row.Reason = string(d.Reason)
	x.note()
	d.AuditID = x.row.ID
	return d
}

// recordAtEnd makes the body commit the outcome row when it ends, however it
// ends, and before the client sees the end of it.
func (x *Exchange) recordAtEnd(res *http.Response) *http.Response {
	x.carried()
	length := res.ContentLength
	if x.request.Method == http.MethodHead || res.StatusCode == http.StatusNoContent || res.StatusCode == http.StatusNotModified {
		length = 0
	}
	body := &outcomeBody{src: res.Body, left: length, client: x.request.Context()}
	body.end = func(n int64, reason Reason) {
		defer x.leave()
		if reason == reasonUndelivered && x.shed() {
			reason = reasonMemory
		}
		x.row.ResponseBytes, x.row.Reason = n, string(reason)
		x.bodyFields()
		x.note()
	}
	switch {
	case length != 0:
	case x.request.Context().Err() != nil:
		body.finish(reasonUndelivered)
	default:
		body.finish("")
	}
	res.Body = body
	return res
}

// outcomeBody tells once how a response body ended.
type outcomeBody struct {
	src    io.ReadCloser
	left   int64 // of the announced length; -1: not announced
	n      int64
	client context.Context //nolint:containedctx // the request's own
	end    func(n int64, reason Reason)
	ended  bool
}

func (b *outcomeBody) Read(p []byte) (int, error) {
	n, err := b.src.Read(p)
	b.n += int64(n)
	if b.left > 0 {
		b.left -= int64(n)
	}
	switch {
	case b.left == 0 || err == io.EOF && b.left < 0 && b.client.Err() == nil:
		b.finish("")
	case err != nil && b.client.Err() != nil:
		b.finish(reasonUndelivered)
	case err != nil:
		b.finish(cutReason(err))
	}
	return n, err
}

// Close before the end means that the client stopped reading.
func (b *outcomeBody) Close() error {
	b.finish(reasonUndelivered)
	return b.src.Close()
}

func (b *outcomeBody) finish(reason Reason) {
	if !b.ended {
		b.ended = true
		b.end(b.n, reason)
	}
}
