package proxy

import (
	"net/http"

	"github.com/ALRubinger/aileron/proxy/modify"
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

// requestSteps is what happens to a request on its way upstream, in order.
var requestSteps = []step[*http.Request]{
	{always, request(modify.StripHopByHop{})},
	{isOperation, request(modify.StripHandled{})},
	{(*Exchange).credentialed, (*Exchange).keepAccepted},
	{(*Exchange).credentialed, request(modify.RequestIdentity{})},
	{(*Exchange).credentialed, (*Exchange).stripQueryCredentials},
	{(*Exchange).credentialed, (*Exchange).injectCredential},
	{isGRPCOperation, request(modify.AcceptTrailers{})},
	{isWebSocket, (*Exchange).offerWebSocket},
}

// responseSteps is what happens to an operation's response on its way to the
// client, in order.
var responseSteps = []step[*http.Response]{
	{(*Exchange).credentialed, (*Exchange).rejectOpaque},
	{always, response(modify.StripNonTokens{})},
	{always, response(modify.StripHopByHop{})},
	{always, response(modify.StripAltSvc{})},
	{(*Exchange).credentialed, response(modify.StripIssuedCredentials{})},
	{(*Exchange).credentialed, response(modify.StripDigests{})},
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

func always(*Exchange) bool            { return true }
func isOperation(x *Exchange) bool     { return x.match.Operation != nil }
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
