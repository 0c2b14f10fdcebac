package modify

import (
	"net/http"

	"github.com/ALRubinger/aileron/proxy/scrub"
)

// Redactions counts the occurrences of secrets that the steps of one exchange
// have redacted, and holds what these steps keep until the body has ended. The
// zero value is ready for use.
type Redactions struct {
	head, trailers, elsewhere int
	body                      scrub.Reader
	trailed                   trailedBody
}

// Total returns how many occurrences have been redacted so far.
func (n *Redactions) Total() int {
	return n.head + n.trailers + n.elsewhere + n.body.Hits()
}

// Add counts n more, found elsewhere than in a response's head, body or trailers.
func (n *Redactions) Add(more int) { n.elsewhere += more }

// RedactHeader redacts the secrets in a response's header.
//
// Response: every occurrence in a field's name or value is overwritten.
type RedactHeader struct {
	Secrets *scrub.Set
	Count   *Redactions
}

// ModifyResponse implements martian.ResponseModifier.
func (m RedactHeader) ModifyResponse(res *http.Response) error {
	m.Count.head = m.Secrets.Header(res.Header)
	return nil
}

// RedactBody redacts the secrets in a response's body as it streams.
//
// Response: the body is read through the scrubber. Every occurrence is
// overwritten byte by byte, so that Content-Length stays true.
type RedactBody struct {
	Secrets func() *scrub.Set // a response that began before a credential was bound must not reveal it
	Count   *Redactions
	Turns   scrub.Turns // of the body; nil: none are taken
}

// ModifyResponse implements martian.ResponseModifier.
func (m RedactBody) ModifyResponse(res *http.Response) error {
	r := &m.Count.body
	r.Reset(m.Secrets(), res.Body)
	r.Follow(m.Secrets)
	r.Take(m.Turns)
	res.Body = r
	return nil
}
