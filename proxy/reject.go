package proxy

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/proxy/budget"
	"github.com/ALRubinger/aileron/proxy/modify"
	"github.com/ALRubinger/aileron/proxy/wire"
	"github.com/ALRubinger/aileron/spec"
)

// Reject records the denial of a request, of which nothing more is decided. r may be nil.
func (p *Plane) Reject(at Arrival, r *http.Request, d *Denial) *Denial {
	return p.Begin(at, r).Reject(d)
}

// Reject commits the outcome row of a denial, puts its id on d, and delays the
// response of a client that is denied too often.
func (x *Exchange) Reject(d *Denial) *Denial {
	if d.Reason == ReasonUndelivered {
		return x.recordUndelivered(d)
	}
	defer x.leave() // a log that panics too
	if d.Reason == ReasonClientGone && x.shed() {
		d = DenyMemory()
	}
	x.row.Decision, x.row.Reason = audit.DecisionRejected, string(d.Reason)
	x.row.Status = d.Status()
	if d.Boundary != "" {
		x.SetField("boundary", d.Boundary)
	}
	if d.Came != 0 { // the request has left
		x.SetField("upstream_status", strconv.Itoa(d.Came))
	}
	x.attribute()
	d.Subject, d.Connector = x.subject(d.Reason), x.connector()
	switch {
	case x.intended:
		x.recordSettled()
		d.AuditID = x.row.ID
	case x.isFlood():
		x.capture = nil // it has no row of its own
		d.AuditID = x.count()
	case x.recordNow() != nil:
		d = ReasonAudit.Deny("the audit log cannot be written")
	default:
		d.AuditID = x.row.ID
	}
	x.captureDenial(d)
	x.leave() // a denial that is delayed is under way no more
	d.ends = !x.delay()
	return d
}

// flusher is a Recorder that can wait until the rows of AppendSoon are committed.
type flusher interface{ Flush(ctx context.Context) }

// Without this line a method of another name would turn the wait off in silence.
var _ flusher = (*audit.Log)(nil)

// recordSettled adds the outcome of an intent, and waits until it is committed.
// Where the log cannot be written now, the log holds it: an intent must not lose
// its outcome.
func (x *Exchange) recordSettled() {
	x.recordAsync()
	if log, ok := x.p.cfg.Audit.(flusher); ok {
		ctx, cancel := context.WithTimeout(context.Background(), recordTimeout)
		defer cancel()
		log.Flush(ctx)
	}
}

// DenyMemory returns the denial of an exchange for which there is no memory.
func DenyMemory() *Denial {
	return ReasonMemory.Deny("the session's memory budget is exhausted")
}

// shed reports whether the exchange ended because it had to make room.
func (x *Exchange) shed() bool {
	return x.request != nil && errors.Is(context.Cause(x.request.Context()), budget.ErrShed)
}

// A denial costs its sender nothing, and the session a row for good. So a sandbox
// that is denied again and again waits for its responses: its rows fill the disk,
// on which every session's log is, only slowly. Beyond maxWaiters each denial
// costs it a connection and a handshake, and rows count them.
const (
	denialsPerSecond = 200
	denialsAtOnce    = 2000
	maxDelay         = 10 * time.Minute // the most that one waits, if its client does

	// maxWaiters is how many denials wait at a time. One more is sent at once, and
	// its connection ends.
	maxWaiters = 256
)

// delay waits until a denial may be sent, and reports whether its connection may
// go on. What waits holds neither request nor head.
func (x *Exchange) delay() bool {
	p := x.p
	if p.denialRate.Allow() {
		return true
	}
	if x.row.Reason == string(ReasonMemory) {
		return false // to wait would hold what there is too little of
	}
	select {
	case p.waiters <- struct{}{}:
		defer func() { <-p.waiters }()
	default:
		return false
	}
	// Only those that wait add to the wait of those behind them.
	wait := p.denialRate.Reserve().Delay()
	ctx := context.Background()
	if x.request != nil {
		ctx = x.request.Context()
		dropHead(x.request)
		wire.Park(x.request)
	}
	x.row = audit.Row{ID: x.row.ID, Status: x.row.Status}
	x.decision, x.target, x.match = Decision{}, spec.Target{}, spec.Match{}
	timer := time.NewTimer(min(wait, maxDelay))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	case <-p.draining.Done():
	}
	return true
}

// dropHead drops what a denied request holds, wherever it is still referred to:
// all its strings are parts of one head. What the response depends on stays.
func dropHead(r *http.Request) {
	kept := http.Header{}
	if modify.IsGRPC(r.Header) {
		kept["Content-Type"] = []string{"application/grpc"}
	}
	r.Header, r.Trailer = kept, nil
	r.Method = strings.Clone(r.Method)
	r.URL, r.RequestURI, r.Host = &url.URL{}, "", ""
}
