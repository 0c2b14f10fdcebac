package modify

import (
	"context"
	"net/http"
	"net/textproto"
	"strings"
	"sync/atomic"
	"time"

	"github.com/ALRubinger/aileron/proxy/opaque"
)

// RejectPacked makes a response fail whose body shows that it is packed or in
// wide characters. The list has it twice: as itself, where the body is still as
// the upstream sent it, and as [RejectPacked.Await], at the end. It must not be
// copied after that.
//
// Response: the body ends with an error where it shows itself to be packed. A
// format that the operation declares passes, and Found returns it.
type RejectPacked struct {
	Method   string // of the request
	Declared bool   // the operation declares packed responses

	// Wait and StreamWait are how long the head waits for the first bytes of the
	// body, so that the response can still be rejected for what they are. A body
	// that comes later is cut instead; nothing of it is delivered either way.
	// StreamWait is for a stream, whose first event may be long in coming.
	Wait, StreamWait time.Duration

	body  opaque.Body
	looks bool // the response has a body, which is judged
	wait  time.Duration
	found atomic.Value // an opaque.Format; a body may be read ahead
	asked opaque.Judge // judge of this RejectPacked; nil: not bound yet
}

// Reset prepares m for another exchange. No goroutine may use it any more.
func (m *RejectPacked) Reset() { *m = RejectPacked{asked: m.asked} }

// Found returns the format that the response passed as although it is packed,
// "" when it is not packed as far as is known.
func (m *RejectPacked) Found() opaque.Format {
	f, _ := m.found.Load().(opaque.Format)
	return f
}

// ModifyResponse implements martian.ResponseModifier.
func (m *RejectPacked) ModifyResponse(res *http.Response) error {
	if bodiless(m.Method, res) {
		return nil
	}
	media := mediaType(res.Header)
	if m.asked == nil {
		m.asked = m.judge
	}
	body, judge := res.Body, m.asked
	m.wait = m.Wait
	switch {
	case hasEnvelopes(media) && strings.HasPrefix(media, grpcWebText):
		body, judge, m.wait = opaque.TextMessages(body, judge), nil, m.StreamWait
	case hasEnvelopes(media):
		body, judge, m.wait = opaque.Messages(body, judge), nil, m.StreamWait
	case strings.HasPrefix(media, "multipart/"):
		body = opaque.Parts(body, rejectOpaquePart, judge)
	case media == "text/event-stream":
		m.wait = m.StreamWait
	}
	m.body.Reset(body, res.ContentLength, judge)
	if isText(media) {
		m.body.ExpectText()
	}
	m.looks, res.Body = true, &m.body
	return nil
}

// Await reads the beginning of the body. It is the last step: a short body ends
// with it, and brings its trailers, for which the other modifiers must be ready.
//
// Response: one that is found to be packed fails, before any of it leaves.
//
// uploaded is whether the request's body has been sent. An upstream that responds
// before does not want the rest, and the client must learn so at once: such a
// response is judged when its body is read, and cut.
func (m *RejectPacked) Await(ctx context.Context, uploaded bool) error {
	if !m.looks || !uploaded {
		return nil
	}
	return m.body.Await(ctx, m.wait)
}

// judge decides about a format that a body was found to have.
func (m *RejectPacked) judge(f opaque.Format) error {
	switch {
	case f.Charset():
		return fail(Charset, "the upstream's response is in a character set that is not searched")
	case f == opaque.Message:
		return fail(Packed, "the upstream compressed a message although it was asked not to")
	case m.Declared:
		m.found.Store(f)
		return nil
	}
	return fail(Packed, "the upstream's response is packed (%s), so it cannot be searched for secrets", f)
}

// rejectOpaquePart holds a part's header against the rules for the response's
// own.
func rejectOpaquePart(h textproto.MIMEHeader) error { return rejectOpaqueHeader(http.Header(h)) }

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

// isText reports whether a media type is one of text, whatever it says.
func isText(media string) bool {
	kind, sub, _ := strings.Cut(media, "/")
	if _, suffix, ok := strings.Cut(sub, "+"); ok {
		sub = suffix
	}
	if kind == "text" {
		return true
	}
	switch sub {
	case "json", "x-ndjson", "ndjson", "json-seq", "jsonl", "xml", "javascript", "x-javascript", "ecmascript", "graphql",
		"x-www-form-urlencoded", "yaml", "x-yaml", "toml", "sql", "x-sh":
		return kind == "application"
	}
	return false
}

const grpcWebText = "application/grpc-web-text" // whose envelopes are in base64

// hasEnvelopes reports whether the messages of a media type have gRPC's five
// bytes in front, of which one states whether the message is compressed.
func hasEnvelopes(media string) bool {
	for _, prefix := range []string{"application/grpc", "application/grpc-web", grpcWebText, "application/connect"} {
		if rest, ok := strings.CutPrefix(media, prefix); ok && (rest == "" || rest[0] == '+') {
			return true
		}
	}
	return false
}
