package proxy

import (
	"context"
	"io"
	"net/http"
)

// recordAtEnd makes the body commit the outcome row when it ends, however it
// ends, and before the client sees the end of it.
func (x *Exchange) recordAtEnd(res *http.Response) *http.Response {
	x.markSent()
	length := res.ContentLength
	if x.request.Method == http.MethodHead ||
		res.StatusCode == http.StatusNoContent || res.StatusCode == http.StatusNotModified {
		length = 0
	}
	x.came = outcome{src: res.Body, left: length, client: x.request.Context(), last: endsWithBody(res)}
	switch {
	case length != 0:
	case x.came.client.Err() != nil:
		x.bodyEnded(ReasonUndelivered)
	default:
		x.bodyEnded("")
	}
	res.Body, res.Request = &outcomeBody{x}, x.request
	return res
}

// outcome is what has become of a response's body.
type outcome struct {
	src    io.ReadCloser
	left   int64 // of the announced length; -1: not announced
	n      int64
	client context.Context //nolint:containedctx // the request's own
	ended  bool
	last   bool // nothing refers to the exchange when the body is closed
}

// bodyEnded records the outcome, once.
func (x *Exchange) bodyEnded(reason Reason) {
	if x.came.ended {
		return
	}
	x.came.ended = true
	if reason == ReasonUndelivered && x.shed() {
		reason = ReasonMemory
	}
	x.row.ResponseBytes, x.row.Reason = x.came.n, string(reason)
	x.bodyFields()
	x.recordAsync()
	x.endCapture()
}

// Abandon ends an exchange whose response is not passed on, for a reason.
func (x *Exchange) Abandon(res *http.Response, reason Reason) {
	x.bodyEnded(reason)
	_ = res.Body.Close()
}

// outcomeBody is the body of a response for the client. It is not a part of its
// exchange, whose memory may be another's once the body is closed: a late call
// finds none.
type outcomeBody struct{ x *Exchange }

func (b *outcomeBody) Read(p []byte) (int, error) {
	x := b.x
	if x == nil {
		return 0, http.ErrBodyReadAfterClose
	}
	o := &x.came
	n, err := o.src.Read(p)
	o.n += int64(n)
	x.capture.Received(p[:n])
	if o.left > 0 {
		o.left -= int64(n)
	}
	switch {
	case o.left == 0 || err == io.EOF && o.left < 0 && o.client.Err() == nil:
		x.bodyEnded("")
	case err != nil && o.client.Err() != nil:
		x.bodyEnded(ReasonUndelivered)
	case err != nil:
		x.bodyEnded(cutReason(err))
	}
	return n, err
}

// Close before the end means that the client stopped reading.
func (b *outcomeBody) Close() error {
	x := b.x
	if x == nil {
		return nil
	}
	b.x = nil
	err := x.closeBody()
	if x.came.last {
		x.p.exchanges.give(x)
	}
	return err
}

// closeBody ends the exchange. It is under way until then, and not only until the
// end of the body was read: a session that drains cuts its connections once nothing
// is under way, and the last piece has to be written before.
func (x *Exchange) closeBody() error {
	defer x.leave()
	x.bodyEnded(ReasonUndelivered)
	return x.came.src.Close()
}
