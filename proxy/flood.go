package proxy

import (
	"maps"
	"slices"

	"github.com/ALRubinger/aileron/audit"
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
	reasons map[string]int // how many denials had each
	hosts   someHosts
}

// isFlood reports whether the denial of x gets no row of its own: as many wait as
// may, and more come than rows may be made.
func (x *Exchange) isFlood() bool {
	p := x.p
	return len(p.waiters) == cap(p.waiters) && p.denialRate.Tokens() < 1 && !p.floodRate.Allow()
}

// count counts the denial of x, and returns the id of the row that will count it.
func (x *Exchange) count() (id string) {
	x.p.flood.add(x.p.countFlood, func(f *flood) {
		if f.id == "" {
			f.id, f.reasons = audit.NewID(), map[string]int{}
		}
		id = f.id
		f.reasons[x.row.Reason]++
		f.hosts.add(x.row.Host)
	})
	return id
}

// countFlood records the count, if there is one. Serve calls it when the last
// connection has ended, so that no count is lost.
func (p *Plane) countFlood() {
	p.flood.flush(func(f flood) {
		x := p.newExchange(Listener{}, audit.SourceRequestBoundary, Authority{Host: f.hosts.only()}, "", nil)
		x.row.Decision, x.row.Reason = audit.DecisionRejected, commonest(f.reasons)
		x.row.Status = Reason(x.row.Reason).meaning().status
		requests := 0
		for _, n := range f.reasons {
			requests += n
		}
		x.setField("requests", requests)
		x.setField("hosts", f.hosts.listed())
		x.setField("reasons", f.reasons)
		x.attribute()
		x.recordAsyncAs(f.id)
	})
}

// commonest returns the key with the largest number.
func commonest(counts map[string]int) (reason string) {
	for _, key := range slices.Sorted(maps.Keys(counts)) {
		if counts[key] > counts[reason] {
			reason = key
		}
	}
	return reason
}
