package proxy

import (
	"context"
	"io"
	"net/http"
	"time"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/spec"
)

// recordTimeout bounds one wait for the audit log.
const recordTimeout = 5 * time.Second

// recordIntent commits the intent event. If it cannot be committed, the request
// is not sent.
func (x *Exchange) recordIntent() *Denial {
	x.recordDropped()
	row := x.row
	row.Event = audit.EventProxyStarted
	ctx, cancel := context.WithTimeout(context.WithoutCancel(x.request.Context()), recordTimeout)
	defer cancel()
	if _, err := x.p.cfg.Audit.Append(ctx, row); err != nil {
		x.p.cfg.Log.Debug("the intent row could not be written", "error", err) // the log itself reports an outage, once
		return deny(reasonAudit, "the audit log cannot be written")
	}
	x.intended = true
	return nil
}

// attribute puts the connector that names the host into a denial's row: a filter
// by connector must show its denials too.
func (x *Exchange) attribute() {
	if x.row.ConnectorFQN != "" || x.row.Host == "" {
		return
	}
	port := uint16(x.row.Port) //nolint:gosec // it is one
	t := spec.Target{Host: x.row.Host, Port: port, Method: x.row.Method, Path: x.row.Path}
	if c := x.grants.Index.Naming(t); c != nil {
		x.row.ConnectorFQN, x.row.ConnectorVersion = string(c.FQN), c.Version
	}
}

// recordNow commits the outcome row of a denial, which is sent only then.
func (x *Exchange) recordNow() error {
	x.finalize()
	// The client may be gone; its row is written all the same.
	ctx, cancel := context.WithTimeout(context.Background(), recordTimeout)
	defer cancel()
	if _, err := x.p.cfg.Audit.Append(ctx, x.row); err != nil {
		x.p.cfg.Log.Debug("an outcome row could not be written", "error", err)
		return err
	}
	return nil
}

// recordAsync adds the outcome row of an exchange that took place. Since that
// cannot be undone, the row may share the next commit.
func (x *Exchange) recordAsync() { x.recordAsyncAs(audit.NewID()) }

// recordAsyncAs is recordAsync for a row whose id is given.
func (x *Exchange) recordAsyncAs(id string) {
	x.finalize()
	x.row.ID = id
	ctx, cancel := context.WithTimeout(context.Background(), recordTimeout)
	defer cancel()
	if err := x.p.cfg.Audit.AppendSoon(ctx, x.row); err != nil {
		x.p.cfg.Log.Debug("an outcome row could not be written", "error", err) // the log counts it as lost
	}
}

// finalize puts the sums into the outcome row.
func (x *Exchange) finalize() {
	x.row.ID = audit.NewID()
	x.row.DurationUS = time.Since(x.started).Microseconds()
	if x.sent != nil {
		x.row.RequestBytes = x.sent.Sent()
	}
	x.row.Redactions = x.redactions.Total()
	if x.packed != nil && x.packed.Found() != "" {
		x.row.Fields["packed"] = string(x.packed.Found())
	}
}

// markSent puts into the row that the request was sent.
func (x *Exchange) markSent() {
	x.row.Event, x.row.Decision = audit.EventProxyProxied, audit.DecisionProxied
	if x.decision.Verdict == Passthrough {
		x.row.Event, x.row.Decision = audit.EventSandboxPassthrough, audit.DecisionPassthrough
	}
}

// recordUndelivered records a request whose client left before the response came:
// it was sent, and so was proxied all the same.
func (x *Exchange) recordUndelivered(d *Denial) *Denial {
	defer x.leave()
	if x.shed() {
		d.Reason = reasonMemory
	}
	x.markSent()
	x.row.Reason = string(d.Reason)
	x.recordAsync()
	d.AuditID = x.row.ID
	return d
}

// recordOutcome returns the response, with a body that records the outcome when
// it ends.
func (x *Exchange) recordOutcome(res *http.Response) *http.Response {
	if res.StatusCode == http.StatusSwitchingProtocols {
		return x.switched(res)
	}
	return x.recordAtEnd(res)
}

// recordAtEnd makes the body commit the outcome row when it ends, however it
// ends, and before the client sees the end of it.
func (x *Exchange) recordAtEnd(res *http.Response) *http.Response {
	x.markSent()
	length := res.ContentLength
	if x.request.Method == http.MethodHead ||
		res.StatusCode == http.StatusNoContent || res.StatusCode == http.StatusNotModified {
		length = 0
	}
	body := &outcomeBody{src: res.Body, left: length, client: x.request.Context()}
	body.end = func(n int64, reason Reason) {
		defer x.leave()
		if reason == reasonUndelivered && x.shed() {
			reason = reasonMemory
		}
		x.row.ResponseBytes, x.row.Reason = n, string(reason)
		x.bodyFields()
		x.recordAsync()
	}
	switch {
	case length != 0:
	case x.request.Context().Err() != nil:
		body.finish(reasonUndelivered)
	default:
		body.finish("")
	}
	res.Body = body
	return res
}

// outcomeBody calls end, once, when a response body has ended.
type outcomeBody struct {
	src    io.ReadCloser
	left   int64 // of the announced length; -1: not announced
	n      int64
	client context.Context //nolint:containedctx // the request's own
	end    func(n int64, reason Reason)
	ended  bool
}

func (b *outcomeBody) Read(p []byte) (int, error) {
	n, err := b.src.Read(p)
	b.n += int64(n)
	if b.left > 0 {
		b.left -= int64(n)
	}
	switch {
	case b.left == 0 || err == io.EOF && b.left < 0 && b.client.Err() == nil:
		b.finish("")
	case err != nil && b.client.Err() != nil:
		b.finish(reasonUndelivered)
	case err != nil:
		b.finish(cutReason(err))
	}
	return n, err
}

// Close before the end means that the client stopped reading.
func (b *outcomeBody) Close() error {
	b.finish(reasonUndelivered)
	return b.src.Close()
}

func (b *outcomeBody) finish(reason Reason) {
	if !b.ended {
		b.ended = true
		b.end(b.n, reason)
	}
}
