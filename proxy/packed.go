package proxy

import (
	"io"
	"net/http"
	"net/textproto"
	"strings"
	"time"

	"github.com/ALRubinger/aileron/proxy/opaque"
)

// How long a response's head waits for the first bytes of its body, so that
// it can still be refused for what they are. A body that comes later is cut
// instead; nothing of it is delivered either way.
const (
	peekWait       = time.Second
	peekWaitStream = 100 * time.Millisecond // of a stream, whose first event may be long in coming
)

// refusePacked makes a response fail whose body shows that it is packed or in
// wide characters: before any of the body leaves if the first bytes show it,
// else by ending the body there.
func (x *Exchange) refusePacked(res *http.Response) error {
	if bodiless(x.request.Method, res) {
		return nil
	}
	media := mediaType(res.Header)
	body, judge, wait := res.Body, opaque.Judge(x.judgeFormat), x.p.peek
	switch {
	case hasEnvelopes(media) && strings.HasPrefix(media, grpcWebText):
		body, judge, wait = opaque.TextMessages(body, x.judgeFormat), nil, x.p.peekStream
	case hasEnvelopes(media):
		body, judge, wait = opaque.Messages(body, x.judgeFormat), nil, x.p.peekStream
	case strings.HasPrefix(media, "multipart/"):
		body = opaque.Parts(body, x.judgePart, x.judgeFormat)
	case media == "text/event-stream":
		wait = x.p.peekStream
	}
	ahead := opaque.NewBody(body, res.ContentLength, judge)
	res.Body = ahead
	x.await = func() error { return ahead.Await(x.request.Context(), wait) }
	return nil
}

// awaitFirstBytes reads the beginning of the body. It is the last step: a
// short body ends with it, and brings its trailers, for which the other steps
// must be ready.
func (x *Exchange) awaitFirstBytes(*http.Response) error {
	if x.await == nil || !x.uploaded() {
		return nil
	}
	return x.await()
}

// uploaded reports whether the request's body has been sent. An upstream that
// answers before does not want the rest, and the client must learn so at once:
// such a response is judged when its body is read, and cut.
func (x *Exchange) uploaded() bool {
	switch {
	case x.sent == nil:
		return true
	case x.request.ContentLength >= 0 && x.sent.n.Load() >= x.request.ContentLength:
		return true
	case !x.sent.mu.TryLock(): // it is being read
		return false
	}
	defer x.sent.mu.Unlock()
	return x.sent.err != nil
}

// bodiless reports whether a response has no body, whatever its head announces.
func bodiless(method string, res *http.Response) bool {
	return method == http.MethodHead || res.ContentLength == 0 || res.Body == nil || res.Body == http.NoBody ||
		res.StatusCode == http.StatusNoContent || res.StatusCode == http.StatusNotModified
}

// mediaType returns the lower-case type and subtype of Content-Type.
func mediaType(h http.Header) string {
	media, _, _ := strings.Cut(h.Get("Content-Type"), ";")
	return strings.ToLower(strings.TrimSpace(media))
}

const grpcWebText = "application/grpc-web-text" // whose envelopes are in base64

// hasEnvelopes reports the media types whose messages have gRPC's five bytes
// in front, of which one says whether the message is compressed.
func hasEnvelopes(media string) bool {
	for _, prefix := range []string{"application/grpc", "application/grpc-web", grpcWebText, "application/connect"} {
		if rest, ok := strings.CutPrefix(media, prefix); ok && (rest == "" || rest[0] == '+') {
			return true
		}
	}
	return false
}

// judgeFormat decides about a format that a body was found to have. What an
// operation declares as packed passes, and the row says so.
func (x *Exchange) judgeFormat(f opaque.Format) error {
	switch {
	case f.Charset():
		return deny(reasonCharset, "the upstream's response is in a character set that is not searched")
	case f == opaque.Message:
		return deny(reasonPacked, "the upstream compressed a message although it was asked not to")
	case x.match.Operation.Packed:
		x.packed.Store(f)
		return nil
	}
	return deny(reasonPacked, "the upstream's response is packed (%s), so it cannot be searched for secrets", f)
}

// judgePart holds a part's header against the rules for the response's own.
func (x *Exchange) judgePart(header textproto.MIMEHeader) error {
	h := http.Header(header)
	if err := refuseOddNames(h); err != nil {
		return err
	}
	return refuseCoded(h)
}

var _ io.ReadCloser = (*opaque.Body)(nil)
