package proxy

import (
	"net/http"
	"time"

	"github.com/ALRubinger/aileron/proxy/modify"
	"github.com/ALRubinger/aileron/proxy/scrub"
)

// This file has the steps whose modifiers need something of the exchange; steps.go
// has their order.

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
	return modify.RedactBody{Secrets: x.kept.secrets, Count: &x.redactions}.ModifyResponse(res)
}

func (x *Exchange) redactTrailers(res *http.Response) error {
	return modify.RedactTrailers{Secrets: x.kept.secrets, Count: &x.redactions}.ModifyResponse(res)
}

// checkSwitch rejects a switch of protocols that the exchange did not ask for.
func (x *Exchange) checkSwitch(res *http.Response) error { return x.websocket.ModifyResponse(res) }
