package proxy

import (
	"io"
	"net/http"
)

// cleanTrailers makes the answer's trailers fit for the box as soon as they
// are known, which is at the end of the body: those that would change how the
// answer is read, or that issue a credential, are dropped (RFC 9110 section
// 6.5.1), the rest is scrubbed.
func (x *Exchange) cleanTrailers(res *http.Response) error {
	before := x.scrubbed
	t := &trailedBody{ReadCloser: res.Body, clean: func() int {
		dropNonTokens(res.Trailer)
		for _, name := range notInTrailers {
			res.Trailer.Del(name)
		}
		return x.scrub().Header(res.Trailer)
	}}
	// What is announced before the end has no values yet.
	res.Trailer = nil
	res.Body, x.scrubbed = t, func() int { return before() + t.hits }
	return nil
}

var notInTrailers = []string{
	"Alt-Svc", "Authentication-Control", "Authentication-Info", "Authorization", "Cache-Control", "Connection", "Content-Digest",
	"Content-Encoding", "Content-Length", "Content-Location", "Content-Md5", "Content-Range", "Content-Type", "Digest", "Host",
	"Keep-Alive", "Location", "Proxy-Authenticate", "Proxy-Authentication-Info", "Proxy-Connection", "Repr-Digest", "Set-Cookie",
	"Set-Cookie2", "Te", "Trailer", "Transfer-Encoding", "Upgrade", "Www-Authenticate", "X-Aileron-Audit-Id", "X-Goog-Hash",
}

// trailedBody cleans the trailers when the body ends.
type trailedBody struct {
	io.ReadCloser
	clean func() int
	hits  int
	ended bool
}

func (b *trailedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err == io.EOF && !b.ended {
		b.ended = true
		b.hits = b.clean()
	}
	return n, err
}
