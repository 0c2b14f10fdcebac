package proxy

import (
	"net/http"
	"slices"
	"time"

	"github.com/ALRubinger/aileron/proxy/modify"
	"github.com/ALRubinger/aileron/proxy/scrub"
	"github.com/ALRubinger/aileron/spec"
)

// step is one thing that is done to a message of an exchange, where it applies. A
// list of steps is the same for all exchanges: none is made for one.
type step[Message any] struct {
	when func(*Exchange) bool
	do   func(*Exchange, Message) error
}

// apply does the steps that apply, in order, until one fails.
func apply[Message any](steps []step[Message], x *Exchange, m Message) error {
	for i := range steps {
		if !steps[i].when(x) {
			continue
		}
		if err := steps[i].do(x, m); err != nil {
			return err
		}
	}
	return nil
}

// removingSteps is what is taken from a request on its way upstream, in order. What is left is what a person approves.
var removingSteps = []step[*http.Request]{
	{always, request(modify.StripHopByHop{})},
	{isOperation, request(modify.StripHandled{})},
	{(*Exchange).besideMCP, request(modify.StripSession{})},
	{(*Exchange).credentialed, (*Exchange).keepAccepted},
	{(*Exchange).isRead, request(modify.RequestIdentity{})},
	{(*Exchange).credentialed, (*Exchange).stripQueryCredentials},
}

// requestSteps is what happens to a request on its way upstream, in order.
var requestSteps = append(slices.Clip(removingSteps), []step[*http.Request]{
	{(*Exchange).credentialed, (*Exchange).injectCredential},
	{isGRPCOperation, request(modify.AcceptTrailers{})},
	{isWebSocket, (*Exchange).offerWebSocket},
}...)

// responseSteps is what happens to an operation's response on its way to the
// client, in order.
var responseSteps = []step[*http.Response]{
	{(*Exchange).credentialed, (*Exchange).rejectOpaque},
	{always, response(modify.StripNonTokens{})},
	{always, response(modify.StripHopByHop{})},
	{always, response(modify.StripAltSvc{})},
	{(*Exchange).credentialed, response(modify.StripIssuedCredentials{})},
	{(*Exchange).credentialed, response(modify.StripDigests{})},
	{(*Exchange).dropsRanges, response(modify.StripAcceptRanges{})},
	{(*Exchange).credentialed, (*Exchange).rejectPacked},
	{always, (*Exchange).redactHeader},
	{always, (*Exchange).redactBody},
	{always, (*Exchange).redactTrailers},
	{always, (*Exchange).watchFields},
	{(*Exchange).credentialed, (*Exchange).awaitJudgement},
}

// switchingSteps is what happens to a response that leaves HTTP, in order. Its
// messages are redacted by the relay.
var switchingSteps = []step[*http.Response]{
	{always, response(modify.StripNonTokens{})},
	{always, (*Exchange).checkSwitch},
	{always, response(modify.StripHopByHop{})},
	{always, response(modify.StripAltSvc{})},
	{(*Exchange).credentialed, response(modify.StripIssuedCredentials{})},
	{always, (*Exchange).redactHeader},
}

// passthroughSteps is what happens to the response to a request that was passed
// through, and nothing else: the bytes are the upstream's own.
var passthroughSteps = []step[*http.Response]{
	{always, response(modify.StripNonTokens{})},
	{always, (*Exchange).takeTurns},
}

// stepsOf returns what happens to a response.
func (x *Exchange) stepsOf(res *http.Response) []step[*http.Response] {
	switch {
	case res.StatusCode == http.StatusSwitchingProtocols:
		return switchingSteps
	case x.decision.Verdict == Passthrough:
		return passthroughSteps
	}
	return responseSteps
}

func always(*Exchange) bool        { return true }
func isOperation(x *Exchange) bool { return x.match.Operation != nil }

// besideMCP reports whether the request goes to a host where another connector judges messages of MCP. A server may
// take the id of a session for the credential that began it, and what that may call is judged on the other's paths
// alone.
func (x *Exchange) besideMCP() bool {
	var c *spec.Connector
	if op := x.match.Operation; op != nil {
		c = op.Connector
	}
	return x.grants != nil && x.grants.Index.BelongsToMCP(c, x.target.Host, x.target.Port)
}

func (x *Exchange) isRead() bool       { return x.credentialed() || x.isMetered() }
func (x *Exchange) dropsRanges() bool  { return x.credentialed() && !x.match.Operation.Ranges }
func isGRPCOperation(x *Exchange) bool { return x.match.Operation != nil && x.grpc }
func isWebSocket(x *Exchange) bool     { return x.websocket != nil }

// request returns the step of a modifier that needs nothing of the exchange.
func request(m interface{ ModifyRequest(r *http.Request) error }) func(*Exchange, *http.Request) error {
	return func(_ *Exchange, r *http.Request) error { return m.ModifyRequest(r) }
}

// response is request for a modifier of responses.
func response(m interface {
	ModifyResponse(res *http.Response) error
}) func(*Exchange, *http.Response) error {
	return func(_ *Exchange, res *http.Response) error { return m.ModifyResponse(res) }
}

// The steps whose modifiers need something of the exchange.

func (x *Exchange) keepAccepted(r *http.Request) error { return x.acceptedFields().ModifyRequest(r) }

// acceptedFields returns the modifier that removes the client's fields which a
// credentialed operation does not accept.
func (x *Exchange) acceptedFields() modify.KeepAccepted {
	return modify.KeepAccepted{Operation: x.match.Operation, GRPC: x.grpc, WebSocket: x.websocket != nil}
}

func (x *Exchange) stripQueryCredentials(r *http.Request) error {
	return modify.StripQueryCredentials{Operation: x.match.Operation}.ModifyRequest(r)
}

func (x *Exchange) injectCredential(r *http.Request) error {
	return x.grants.injection(x.match.Operation, &x.bound).ModifyRequest(r)
}

func (x *Exchange) offerWebSocket(r *http.Request) error { return x.websocket.ModifyRequest(r) }

func (x *Exchange) rejectOpaque(res *http.Response) error {
	return modify.RejectOpaque{Ranges: x.match.Operation.Ranges}.ModifyResponse(res)
}

// How long a response's head waits for the first bytes of its body.
const (
	peekWait       = time.Second
	peekWaitStream = 100 * time.Millisecond
)

// rejectPacked begins to judge the body of a response to a credential.
func (x *Exchange) rejectPacked(res *http.Response) error {
	x.packed.Method, x.packed.Declared = x.request.Method, x.match.Operation.Packed
	x.packed.Wait, x.packed.StreamWait = x.p.peek, x.p.peekStream
	return x.packed.ModifyResponse(res)
}

// awaitJudgement waits for what rejectPacked began.
func (x *Exchange) awaitJudgement(*http.Response) error {
	return x.packed.Await(x.request.Context(), x.uploaded())
}

// uploaded reports whether the request's body has been sent.
func (x *Exchange) uploaded() bool {
	length := x.request.ContentLength
	return x.sent == nil || length >= 0 && x.sent.Sent() >= length || x.sent.Ended()
}

// secrets returns the secrets to look for now. The set only grows, and a response
// that began before a credential was bound must not reveal it either.
func (x *Exchange) secrets() *scrub.Set {
	if now := x.p.grants.Load().Scrub; now != nil {
		return now
	}
	return x.grants.Scrub
}

func (x *Exchange) redactHeader(res *http.Response) error {
	return modify.RedactHeader{Secrets: x.secrets(), Count: &x.redactions}.ModifyResponse(res)
}

func (x *Exchange) redactBody(res *http.Response) error {
	x.turns.Reset(x.p.fair, x.request.Context())
	return modify.RedactBody{Secrets: x.kept.secrets, Count: &x.redactions, Turns: &x.turns}.ModifyResponse(res)
}

// takeTurns makes a body that is not searched take its turns too.
func (x *Exchange) takeTurns(res *http.Response) error {
	res.Body = x.p.inTurns(x.request.Context(), res.Body)
	return nil
}

func (x *Exchange) redactTrailers(res *http.Response) error {
	return modify.RedactTrailers{Secrets: x.kept.secrets, Count: &x.redactions}.ModifyResponse(res)
}

// checkSwitch rejects a switch of protocols that the exchange did not ask for.
func (x *Exchange) checkSwitch(res *http.Response) error { return x.websocket.ModifyResponse(res) }
