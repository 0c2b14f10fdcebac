package proxy

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/proxy/approval"
	"github.com/ALRubinger/aileron/proxy/budget"
	"github.com/ALRubinger/aileron/proxy/capture"
	"github.com/ALRubinger/aileron/proxy/judge"
	"github.com/ALRubinger/aileron/proxy/meter"
	"github.com/ALRubinger/aileron/proxy/modify"
	"github.com/ALRubinger/aileron/proxy/upstream"
	"github.com/ALRubinger/aileron/proxy/wire"
	"github.com/ALRubinger/aileron/spec"
	"github.com/ALRubinger/aileron/vault"
)

// Exchange is one request, the decision about it, and its audit row, which grows
// with it.
type Exchange struct {
	p          *Plane
	grants     *Grants
	request    *http.Request // the client's
	at         Arrival
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
	meter      *meter.Reader     // of what the request uses up; nil: none
	charge     *meter.Charge     // against the session's budget; nil: none
	over       *meter.Over       // the limit for which a person is asked; nil: none
	beyond     []*meter.Over     // limits that a person lets the request exceed
	answered   int               // the status of the upstream's response, once its body may be read; 0: none
	unheard    bool              // it was sent, and no head of a response came
	grpc       bool              // the request is one of gRPC
	content    judge.Content     // what the body asks for, of an operation that judges it
	judged     *budget.Hold      // of a body that was read to be judged; nil: none was
	entered    bool              // counted among the exchanges under way
	intended   bool              // its intent is committed
	capture    *capture.Exchange // nil: there is no capture

	asked *approval.Subject // what a person has approved; nil: it needs no approval, or has none yet
	hold  *budget.Hold      // of a request that was held for an approval; nil: it was not
	shows bool              // it is the preview of another request, for the person who is asked about that

	websocket *modify.WebSocket // the handshake that was asked for; nil: none was

	*kept
}

// Arrival is how a request came: what is known of it before it is read, and what its row says of that.
type Arrival struct {
	Source     audit.Source
	Redirected bool      // its client ignored the proxy
	Authority  Authority // of the tunnel, or of an absolute request target
	Scheme     string    // "": that of a CONNECT
	// Life ends with the tunnel that it came by, if it came by one.
	Life context.Context //nolint:containedctx // an upgraded connection shares it
}

// RequestOf returns the request that a call by name makes, as a client of its authority would send it. files are
// those that follow the call.
func RequestOf(ctx context.Context, call spec.Call, files io.Reader) (Authority, *http.Request) {
	t := call.Target
	a := Authority{Host: t.Host, Port: t.Port}
	target := t.Path
	if t.Query != "" {
		target += "?" + t.Query
	}
	r := (&http.Request{
		Method: t.Method, URL: &url.URL{Path: t.Path}, RequestURI: target, Host: a.HostHeader(t.Scheme),
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Body: http.NoBody,
		Header: http.Header{"Accept": {"application/json, */*;q=0.5"}, "User-Agent": {"aileron"}},
	}).WithContext(ctx)
	switch {
	case call.Streamed != nil:
		r.Header.Set("Content-Type", call.ContentType)
		r.Body, r.ContentLength = &streamed{call.Streamed.Reader(files), files}, call.Streamed.Size()
	case call.Body != nil:
		r.Header.Set("Content-Type", call.ContentType)
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(call.Body)), int64(len(call.Body))
	}
	return a, r
}

// streamed is a body with files, which are read from a client.
type streamed struct {
	io.Reader
	files io.Reader
}

func (*streamed) Close() error { return nil }

// Pause notes that the body is not read for a while, and not by its client's fault.
func (s *streamed) Pause() {
	if src, ok := s.files.(interface{ Pause() }); ok {
		src.Pause()
	}
}

// Begin starts an exchange's row. Nothing is decided yet. r may be nil.
func (p *Plane) Begin(at Arrival, r *http.Request) *Exchange {
	x := p.exchanges.take()
	x.p, x.grants, x.request, x.at, x.started = p, p.grants.Load(), r, at, time.Now()
	x.row = audit.Row{
		Event: audit.EventSandboxRejected, SessionID: p.cfg.Session, Source: at.Source,
		Scheme: at.Scheme, Host: at.Authority.Host, Port: int(at.Authority.Port),
		RequestID: audit.NewID(),
	}
	if at.Redirected {
		x.SetField("redirected", true)
	}
	if r != nil {
		x.grpc = modify.IsGRPC(r.Header)
		x.row.Method, x.row.HTTPVersion = r.Method, r.Proto
		if at.Scheme != "" || r.Method != http.MethodConnect { // whose target is no path
			x.row.Path = plainPath(r.RequestURI)
		}
		x.capture = p.cfg.Capture.Begin(r)
		if r.Body != nil && r.Body != http.NoBody {
			x.sent = upstream.NewBody(p.inTurns(r.Context(), x.capture.Upload(r.Body)))
		}
	}
	return x
}

// Name puts the method and the target into the row of an exchange that has no request.
func (x *Exchange) Name(method, target string) *Exchange {
	x.row.Method, x.row.Path = method, plainPath(target)
	return x
}

// SetField puts a value into the row's fields. Most rows have none.
func (x *Exchange) SetField(name string, value any) {
	if x.row.Fields == nil {
		x.row.Fields = map[string]any{}
	}
	x.row.Fields[name] = value
}

// RequestID returns the id by which the exchange's rows are found.
func (x *Exchange) RequestID() string { return x.row.RequestID }

// Body returns the request's body, which counts what is read of it, or other if it has none.
func (x *Exchange) Body(other io.ReadCloser) io.ReadCloser {
	if x.sent != nil {
		return x.sent
	}
	return other
}

// Under makes g the grants of the exchange.
func (x *Exchange) Under(g *Grants) *Exchange {
	x.grants = g
	return x
}

// Previews makes the exchange the preview of a request that an approval is about, which its row names. It never waits
// for an approval of its own.
func (x *Exchange) Previews(id string) *Exchange {
	x.shows = true
	x.SetField("preview_of", id)
	return x
}

// Question returns what [Decide] needs about the exchange's request.
func (x *Exchange) Question() Question {
	r := x.request
	return Question{Index: x.grants.Index, Passthrough: x.p.cfg.Passthrough, Authority: x.at.Authority,
		Scheme: x.row.Scheme, Method: r.Method, Target: r.RequestURI, Host: r.Host, Upgrade: x.asksForUpgrade(),
		Body: x.sent != nil, Approvals: x.p.cfg.Approvals != nil}
}

// Decided keeps the decision. From here on the row names the operation, if the
// request is one, and the whole path of what is sent.
func (x *Exchange) Decided(d Decision) {
	x.decision, x.target, x.match = d, d.Target, d.Match
	switch {
	case d.Verdict == Allow, d.Verdict == Passthrough:
		x.row.Path = wholePath(d.Target.Path)
	case d.Match.Operation != nil && wire.IsPlain(d.Target.Path):
		x.row.Path = cmp.Or(d.Target.Path, x.row.Path)
	}
	if d.Match.Operation == nil {
		return
	}
	x.row.Event = audit.EventProxyRejected
	x.names(d.Match.Operation)
	if !d.Match.Operation.JudgesBody() { // see become
		x.pathFields()
	}
}

// Calls puts into the row that the request calls op by its name, and that no request is made of the call. op is nil if
// no operation was found, and c nil if no connector was.
func (x *Exchange) Calls(c *spec.Connector, op *spec.Operation) {
	x.row.Event = audit.EventOperationRejected
	switch {
	case op != nil:
		x.names(op)
	case c != nil:
		x.row.ConnectorFQN, x.row.ConnectorVersion = string(c.FQN), c.Version
	}
}

func (x *Exchange) names(op *spec.Operation) {
	x.row.ConnectorFQN, x.row.ConnectorVersion = string(op.Connector.FQN), op.Connector.Version
	x.row.Tool, x.row.Operation = op.Tool, op.Name
}

// Operation returns the operation that the request is, nil if it is none.
func (x *Exchange) Operation() *spec.Operation { return x.match.Operation }

func (x *Exchange) credentialed() bool {
	return x.match.Operation != nil && x.match.Operation.Injection != nil
}

// send sends the request and returns the response's head.
func (x *Exchange) send(out *http.Request) (*http.Response, *Denial) {
	res, err := x.p.upstream.RoundTrip(out, x.route())
	if err != nil {
		var failed *upstream.Error
		x.unheard = errors.As(err, &failed) && failed.Sent
		d := denyUpstream(out.Host, err, isSafe(out.Method))
		if d.Reason == ReasonFieldName {
			d.Effect = x.effect(0)
		}
		return nil, d
	}
	return res, nil
}

// route returns how the exchange's request may travel upstream.
func (x *Exchange) route() upstream.Route {
	op := x.match.Operation
	how := upstream.Route{HTTP2: x.request.ProtoMajor == 2, Idempotent: op != nil && op.Idempotent}
	if op != nil {
		how.ResponseHeader = op.ResponseTimeout
	}
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
	if d := x.denyUnreadable(); d != nil {
		return d
	}
	if x.asksForUpgrade() {
		if d := x.admitUpgrade(); d != nil {
			return d
		}
	}
	return x.enter()
}

// denyUnreadable denies an operation of a connector that could not be read again.
func (x *Exchange) denyUnreadable() *Denial {
	if op := x.match.Operation; op != nil {
		if reason := x.grants.Unreadable[op.Connector.FQN]; reason != "" {
			return reason.Deny("the connector %s could not be read", op.Connector.FQN)
		}
	}
	return nil
}

// enter counts the exchange as under way, unless the plane drains or stays full.
func (x *Exchange) enter() *Denial {
	ctx := context.Background()
	if x.request != nil {
		ctx = x.request.Context()
	}
	switch x.p.inflight.enter(ctx) {
	case closed:
		return ReasonDraining.Deny("the session is ending")
	case full:
		return ReasonOverload.Deny("the session has too many requests under way")
	}
	x.entered = true
	return nil
}

func (x *Exchange) leave() {
	if x.hold != nil {
		x.hold.Release()
		x.hold = nil
	}
	x.judged.Release()
	x.charge.Settle(nil) // of a request that was not sent
	if x.entered {
		x.entered = false
		x.p.inflight.leave()
	}
}

// bindCredential finds the credential that the operation needs. One that comes from a login is as it is now, not as it
// was when the exchange began.
func (x *Exchange) bindCredential() (d *Denial) {
	if !x.credentialed() {
		return nil
	}
	if x.bound, d = x.grants.Credential(x.match.Operation); d == nil && x.bound.Login != nil {
		d = x.freshen(vault.Secret{})
	}
	x.row.Binding = x.bound.Binding
	if d == nil && x.bound.Credential.Secret.IsZero() {
		d = ReasonRenewal.Deny("the credential of %s is not there yet", x.match.Operation.Connector.FQN)
	}
	if d == nil {
		d = x.denySwapped(x.bound)
	}
	return d
}

// freshen waits for a token that can be used, and goes on with the grants that have it. refused is one that the service
// did not accept.
func (x *Exchange) freshen(refused vault.Secret) (d *Denial) {
	ctx := context.Background()
	if x.request != nil {
		ctx = x.request.Context()
	}
	err := x.bound.Login.Fresh(ctx, refused)
	fqn := x.match.Operation.Connector.FQN
	switch {
	case errors.Is(err, vault.ErrLocked):
		return ReasonVaultLocked.Deny("the vault is locked, so the login of %s cannot be renewed", fqn)
	case errors.Is(err, vault.ErrLoginNeeded):
		return ReasonCredential.Deny("the login of %s has ended, and is not renewed any more", fqn)
	case err != nil:
		return ReasonRenewal.Deny("the token of %s has expired, and could not be renewed", fqn)
	}
	now := x.p.now(x.grants)
	if now == x.grants {
		return nil
	}
	if !now.Index.Equal(x.grants.Index) {
		return ReasonRenewal.Deny("what the connectors grant changed while the token of %s was renewed; the next request is "+
			"decided by that", fqn)
	}
	x.grants = now
	if x.bound, d = now.Credential(x.match.Operation); d == nil {
		d = x.denySwapped(x.bound)
	}
	return d
}

// isRefused reports whether the service did not accept the token of a login.
func (x *Exchange) isRefused(res *http.Response) bool {
	return res.StatusCode == http.StatusUnauthorized && x.bound.Login != nil
}

// renewRefused has a refused token renewed: for this exchange, if its request may be sent again, and otherwise for the
// next one.
func (x *Exchange) renewRefused(res *http.Response) (*http.Response, *Denial) {
	if x.match.Operation.Idempotent && x.sent == nil && x.websocket == nil {
		return x.sendRenewed(res)
	}
	begun, leave := context.WithCancel(context.Background())
	leave() // a renewal goes on without those who wait
	_ = x.bound.Login.Fresh(begun, x.bound.Credential.Secret)
	return res, nil
}

// sendRenewed sends the request once more, with another token if there is one. Otherwise the response stays as it is.
func (x *Exchange) sendRenewed(res *http.Response) (*http.Response, *Denial) {
	refused := x.bound.Credential.Secret
	_ = x.freshen(refused) // without another token, the answer of the service says more than a denial
	if is := x.bound.Credential.Secret; is.IsZero() || is.Reveal() == refused.Reveal() {
		return res, nil
	}
	_ = res.Body.Close()
	x.request.Header = x.request.Header.Clone() // of the first one, which may be read still: see upstream.Client.RoundTrip
	out, d := x.modifyRequest()
	if d != nil {
		return nil, d
	}
	x.SetField("renewed", true)
	return x.send(out)
}

// subject returns what the hint of a denial is about: the connector to bind, or the
// binding to bind again.
func (x *Exchange) subject(reason Reason) string {
	switch reason {
	case ReasonUnbound:
		return x.row.ConnectorFQN
	case ReasonCredential:
		return x.row.Binding
	}
	return ""
}
