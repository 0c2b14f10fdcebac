package proxy

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/proxy/budget"
	"github.com/ALRubinger/aileron/proxy/internal/summary"
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
	d.GraphQL = x.isGraphQL()
	x.captureDenial(d)
	x.leave() // a denial that is delayed is under way no more
	d.ends = !x.delay()
	return d
}

// isGraphQL reports whether the client of the exchange reads responses of GraphQL: by its operation, or by the usual
// path of an endpoint, where no operation is for it.
func (x *Exchange) isGraphQL() bool {
	if op := x.match.Operation; op != nil {
		return op.GraphQL != nil
	}
	return path.Base(x.row.Path) == "graphql"
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

// Denials beyond those that may wait cost their client a connection and a
// handshake each, and no more: beyond these bounds they are counted, and each
// second has one row with their number.
const (
	floodsAtOnce    = 2000
	floodsPerSecond = 20
)

// flood counts denials that have no row of their own.
type flood struct {
	id      string         // of the row that will count them
	reasons map[Reason]int // how many denials had each
	hosts   summary.Hosts
}

// isFlood reports whether the denial of x gets no row of its own: as many wait as
// may, and more come than rows may be made.
func (x *Exchange) isFlood() bool {
	p := x.p
	return len(p.waiters) == cap(p.waiters) && p.denialRate.Tokens() < 1 && !p.floodRate.Allow()
}

// count counts the denial of x, and returns the id of the row that will count it.
func (x *Exchange) count() (id string) {
	x.p.flood.Add(x.p.countFlood, func(f *flood) {
		if f.id == "" {
			f.id, f.reasons = audit.NewID(), map[Reason]int{}
		}
		id = f.id
		f.reasons[Reason(x.row.Reason)]++
		f.hosts.Add(x.row.Host)
	})
	return id
}

// countFlood records the count, if there is one.
func (p *Plane) countFlood() {
	p.flood.Flush(func(f flood) {
		requests := 0
		for _, n := range f.reasons {
			requests += n
		}
		x := p.Begin(Arrival{Source: audit.SourceRequestBoundary, Authority: Authority{Host: f.hosts.Only()}}, nil)
		x.row.ID = f.id
		x.RejectSoon(commonest(f.reasons),
			map[string]any{"requests": requests, "hosts": f.hosts.Listed(), "reasons": f.reasons})
	})
}

// RejectSoon records a rejection that no client waits for.
func (x *Exchange) RejectSoon(reason Reason, fields map[string]any) {
	x.row.Decision, x.row.Reason = audit.DecisionRejected, string(reason)
	x.row.Status = reason.meaning().status
	for name, value := range fields {
		x.SetField(name, value)
	}
	x.attribute()
	x.recordAsync()
}

// commonest returns the key with the largest number.
func commonest(counts map[Reason]int) (reason Reason) {
	for _, key := range slices.Sorted(maps.Keys(counts)) {
		if counts[key] > counts[reason] {
			reason = key
		}
	}
	return reason
}
