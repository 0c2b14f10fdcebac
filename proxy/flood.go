package proxy

import (
	"maps"
	"slices"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/proxy/internal/summary"
)

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
