package modify

import (
	"io"
	"net/http"

	"github.com/ALRubinger/aileron/proxy/scrub"
)

// RedactTrailers makes the response's trailers fit for the sandbox as soon as
// they are known, which is at the end of the body.
//
// Response: trailers that would change how the response is read, or that issue
// a credential, go (RFC 9110 section 6.5.1); every occurrence of a secret in
// the others is overwritten.
type RedactTrailers struct {
	Secrets func() *scrub.Set
	Count   *Redactions
}

// ModifyResponse implements martian.ResponseModifier.
func (m RedactTrailers) ModifyResponse(res *http.Response) error {
	// What is announced before the end has no values yet.
	res.Trailer = nil
	m.Count.trailed = trailedBody{ReadCloser: res.Body, res: res, step: m}
	res.Body = &m.Count.trailed
	return nil
}

// atEnd makes the trailers of res fit for the sandbox.
func (m RedactTrailers) atEnd(res *http.Response) {
	if len(res.Trailer) == 0 {
		return
	}
	stripNonTokens(res.Trailer)
	for _, name := range notInTrailers {
		res.Trailer.Del(name)
	}
	m.Count.trailers = m.Secrets().Header(res.Trailer)
}

var notInTrailers = []string{
	"Alt-Svc", "Authentication-Control", "Authentication-Info", "Authorization", "Cache-Control",
	"Connection", "Content-Digest", "Content-Encoding", "Content-Length", "Content-Location",
	"Content-Md5", "Content-Range", "Content-Type", "Digest", "Host", "Keep-Alive", "Location",
	"Proxy-Authenticate", "Proxy-Authentication-Info", "Proxy-Connection", "Repr-Digest", "Set-Cookie",
	"Set-Cookie2", "Te", "Trailer", "Transfer-Encoding", "Upgrade", "Www-Authenticate",
	"X-Aileron-Audit-Id", "X-Goog-Hash",
}

// trailedBody calls atEnd of its step when the body ends.
type trailedBody struct {
	io.ReadCloser
	res   *http.Response
	step  RedactTrailers
	ended bool
}

func (b *trailedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err == io.EOF && !b.ended {
		b.ended = true
		b.step.atEnd(b.res)
	}
	return n, err
}
