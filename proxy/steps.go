package proxy

import (
	"net/http"

	"github.com/ALRubinger/aileron/proxy/modify"
)

// requestSteps returns what happens to a request on its way upstream, in order.
func (x *Exchange) requestSteps(bound *Bound) modify.Requests {
	op := x.match.Operation
	steps := append(make(modify.Requests, 0, 8), modify.StripHopByHop{})
	if op != nil {
		steps = append(steps, modify.StripHandled{})
	}
	if x.credentialed() {
		steps = append(steps,
			x.acceptedFields(),
			modify.RequestIdentity{},
			modify.StripQueryCredentials{Operation: op},
			modify.InjectCredential{Operation: op, Credential: bound.Credential},
		)
	}
	if op != nil && modify.IsGRPC(x.request.Header) {
		steps = append(steps, modify.AcceptTrailers{})
	}
	if x.websocket != nil {
		steps = append(steps, x.websocket)
	}
	return steps
}

// responseSteps returns what happens to a response on its way to the client, in
// order.
func (x *Exchange) responseSteps(res *http.Response) modify.Responses {
	switch {
	case res.StatusCode == http.StatusSwitchingProtocols:
		return x.switchingSteps()
	case x.decision.Verdict == Passthrough:
		return modify.Responses{modify.StripNonTokens{}} // and nothing else: the bytes are the upstream's own
	}
	steps := make(modify.Responses, 0, 12)
	if x.credentialed() {
		steps = append(steps, modify.RejectOpaque{Ranges: x.match.Operation.Ranges})
	}
	steps = append(steps, modify.StripNonTokens{}, modify.StripHopByHop{}, modify.StripAltSvc{})
	if x.credentialed() {
		x.packed = x.rejectPacked()
		steps = append(steps, modify.StripIssuedCredentials{}, modify.StripDigests{}, x.packed)
	}
	steps = append(steps,
		modify.RedactHeader{Secrets: x.scrub(), Count: &x.redactions},
		modify.RedactBody{Secrets: x.scrub, Count: &x.redactions},
		modify.RedactTrailers{Secrets: x.scrub, Count: &x.redactions},
		modify.ResponseFunc(x.watchFields),
	)
	if x.packed != nil {
		steps = append(steps, x.packed.Await(x.request.Context(), x.uploaded))
	}
	return steps
}

// switchingSteps returns what happens to a response that leaves HTTP, in order.
// Its messages are redacted by the relay.
func (x *Exchange) switchingSteps() modify.Responses {
	steps := modify.Responses{modify.StripNonTokens{}, x.websocket, modify.StripHopByHop{}, modify.StripAltSvc{}}
	if x.credentialed() {
		steps = append(steps, modify.StripIssuedCredentials{})
	}
	return append(steps, modify.RedactHeader{Secrets: x.scrub(), Count: &x.redactions})
}
