package proxy

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/proxy/capture"
	"github.com/ALRubinger/aileron/proxy/modify"
	"github.com/ALRubinger/aileron/proxy/upstream"
	"github.com/ALRubinger/aileron/spec"
)

// Exchange is one request, the decision about it, and its audit row, which grows
// with it.
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
	bound      Bound          // the operation's credential; zero: it needs none
	sent       *upstream.Body // the request body, when there is one
	out        http.Request   // for the upstream
	url        url.URL        // of out
	came       outcome        // of the response's body
	redactions modify.Redactions
	fields     *fieldReader      // declared fields of the response; nil: none
	grpc       bool              // the request is one of gRPC
	entered    bool              // counted among the exchanges under way
	intended   bool              // its intent is committed
	capture    *capture.Exchange // nil: there is no capture

	tunnel    context.Context   //nolint:containedctx // the life of the tunnel that it came by; nil: it came by none
	websocket *modify.WebSocket // the handshake that was asked for; nil: none was

	*kept
}

// newExchange starts an exchange's row. Nothing is decided yet.
func (p *Plane) newExchange(listener Listener, source audit.Source, a Authority, scheme string,
	r *http.Request) *Exchange {
	x := p.exchanges.take()
	x.p, x.grants, x.request, x.authority, x.started = p, p.grants.Load(), r, a, time.Now()
	x.row = audit.Row{
		Event: audit.EventSandboxRejected, SessionID: p.cfg.Session, Source: source,
		Scheme: scheme, Host: a.Host, Port: int(a.Port),
		RequestID: audit.NewID(),
	}
	if listener.Redirected {
		x.setField("redirected", true)
	}
	if r != nil {
		x.grpc = modify.IsGRPC(r.Header)
		x.row.Method, x.row.HTTPVersion = r.Method, r.Proto
		x.row.Path = plainPath(r.RequestURI)
		x.capture = p.cfg.Capture.Begin(r)
		if r.Body != nil && r.Body != http.NoBody {
			x.sent = upstream.NewBody(x.capture.Upload(r.Body))
		}
	}
	return x
}

// setField puts a value into the row's fields. Most rows have none.
func (x *Exchange) setField(name string, value any) {
	if x.row.Fields == nil {
		x.row.Fields = map[string]any{}
	}
	x.row.Fields[name] = value
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

// send sends the request and returns the response's head.
func (x *Exchange) send(out *http.Request) (*http.Response, *Denial) {
	res, err := x.p.upstream.RoundTrip(out, x.route())
	if err != nil {
		return nil, denyUpstream(out.Host, err)
	}
	return res, nil
}

// route returns how the exchange's request may travel upstream.
func (x *Exchange) route() upstream.Route {
	op := x.match.Operation
	how := upstream.Route{HTTP2: x.request.ProtoMajor == 2, Idempotent: op != nil && op.Idempotent}
	if x.credentialed() {
		how.Key = x.grants.keys[op.Connector.FQN]
	}
	return how
}

// admit denies what was decided against, a WebSocket handshake that is not one
// by its form, and an exchange for which there is no room.
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
		if d := x.admitUpgrade(); d != nil {
			return d
		}
	}
	return x.enter()
}

// enter counts the exchange as under way, unless the plane drains or stays full.
func (x *Exchange) enter() *Denial {
	ctx := context.Background()
	if x.request != nil {
		ctx = x.request.Context()
	}
	switch x.p.inflight.enter(ctx) {
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
		x.p.inflight.leave()
	}
}

// bindCredential finds the credential that the operation needs. An operation that
// needs one never goes without.
func (x *Exchange) bindCredential() *Denial {
	if !x.credentialed() {
		return nil
	}
	fqn := x.match.Operation.Connector.FQN
	bound, ok := x.grants.Bound[fqn]
	switch {
	case ok && !bound.Credential.Secret.IsZero() && bound.Credential.Kind == string(x.match.Operation.Injection.Kind):
		x.row.Binding, x.bound = bound.Binding, bound
		return nil
	case x.grants.VaultUnreadable:
		return deny(reasonVaultUnread, "the vault could not be read, so the credential of %s is out of reach", fqn)
	case x.grants.Locked:
		return deny(reasonVaultLocked, "the vault is locked, so the credential of %s is out of reach", fqn)
	}
	d := deny(reasonUnbound, "no credential is bound for %s", fqn)
	d.Requested = "credential:" + string(x.match.Operation.Injection.Kind) + ":" + string(fqn)
	return d
}

// subject returns what the hint of a denial is about: the connector to bind, or the
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
