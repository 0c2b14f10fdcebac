package proxy

import (
	"net/http"

	"github.com/google/martian/v3/fifo"
	"github.com/google/martian/v3/header"

	"github.com/ALRubinger/aileron/proxy/scrub"
	"github.com/ALRubinger/aileron/proxy/wire"
)

// responseSteps is what happens to an answer on its way in, in order.
func (x *Exchange) responseSteps() *fifo.Group {
	g := fifo.NewGroup()
	if x.credentialed() {
		g.AddResponseModifier(responseStep(x.refuseUnsearchable))
	}
	g.AddResponseModifier(responseStep(dropOddNames))
	g.AddResponseModifier(header.NewHopByHopModifier())
	g.AddResponseModifier(responseStep(dropDetours))
	if x.credentialed() {
		g.AddResponseModifier(responseStep(dropNewCredentials))
		g.AddResponseModifier(responseStep(dropDigests))
		g.AddResponseModifier(responseStep(x.refusePacked))
	}
	g.AddResponseModifier(responseStep(x.scrubHead))
	g.AddResponseModifier(responseStep(func(res *http.Response) error { x.scrubBody(res); return nil }))
	g.AddResponseModifier(responseStep(x.cleanTrailers))
	g.AddResponseModifier(responseStep(x.watchFields))
	g.AddResponseModifier(responseStep(x.awaitFirstBytes))
	return g
}

// switchSteps is what happens to an answer that leaves HTTP.
func (x *Exchange) switchSteps() *fifo.Group {
	g := fifo.NewGroup()
	g.AddResponseModifier(responseStep(dropOddNames))
	g.AddResponseModifier(responseStep(x.acceptWebSocket))
	g.AddResponseModifier(header.NewHopByHopModifier())
	g.AddResponseModifier(responseStep(dropDetours))
	if x.credentialed() {
		g.AddResponseModifier(responseStep(dropNewCredentials))
	}
	g.AddResponseModifier(responseStep(x.scrubHead))
	return g
}

type responseStep func(*http.Response) error

func (f responseStep) ModifyResponse(r *http.Response) error { return f(r) }

// dropOddNames removes fields whose name is no token: net/http keeps "Set-Cookie "
// under a name of its own, and lenient clients take it for the field.
func dropOddNames(res *http.Response) error {
	dropNonTokens(res.Header)
	return nil
}

func dropNonTokens(h http.Header) {
	for name := range h {
		if !wire.IsToken(name) {
			delete(h, name)
		}
	}
}

// dropDetours removes advice that would lead a client around the plane.
func dropDetours(res *http.Response) error {
	for _, name := range []string{"Alt-Svc", "Proxy-Authenticate", "Proxy-Authentication-Info", "X-Aileron-Audit-Id"} {
		res.Header.Del(name)
	}
	return nil
}

// dropNewCredentials removes what an upstream issues to the credential's
// owner: a session cookie is as good as the credential.
func dropNewCredentials(res *http.Response) error {
	for _, name := range []string{"Set-Cookie", "Set-Cookie2", "Authorization", "Authentication-Info", "Authentication-Control"} {
		res.Header.Del(name)
	}
	return nil
}

// dropDigests removes digests of a body that may be changed: they would be
// wrong, and right ones would reveal what was redacted.
func dropDigests(res *http.Response) error {
	for _, name := range []string{"Content-Md5", "Digest", "Content-Digest", "Repr-Digest", "X-Goog-Hash"} {
		res.Header.Del(name)
	}
	return nil
}

// scrub is the set to look for now. It only grows, and an answer that began
// before a credential was bound must not reveal it either.
func (x *Exchange) scrub() *scrub.Set {
	if now := x.p.grants.Load().Scrub; now != nil {
		return now
	}
	return x.grants.Scrub
}

func (x *Exchange) scrubHead(res *http.Response) error {
	hits := x.scrub().Header(res.Header)
	x.scrubbed = func() int { return hits }
	return nil
}
