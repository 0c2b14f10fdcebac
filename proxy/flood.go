package proxy

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/ALRubinger/aileron/audit"
)

// Refusals beyond those that may wait cost their client a connection and a
// handshake each, and no more: beyond these bounds they are counted, and each
// second has one row with their number.
const (
	floodsAtOnce  = 2000
	floodsASecond = 20
	floodPeriod   = time.Second
	maxFloodHosts = 8 // hosts named in a counting row
)

// flood counts the refusals that have no row of their own.
type flood struct {
	recording sync.Mutex // held while a count is recorded, which waits for the audit log

	mu      sync.Mutex
	timer   *time.Timer    // records the count; nil: there is nothing to record
	id      string         // of the row that will count them
	reasons map[string]int // how many refusals had each
	hosts   []string       // the first few
}

// floods reports whether the refusal of x gets no row of its own: as many wait
// as may, and more come than rows may be made.
func (x *Exchange) floods() bool {
	p := x.p
	return len(p.waiters) == cap(p.waiters) && p.refusing.Tokens() < 1 && !p.flooding.Allow()
}

// count counts the refusal of x, and returns the id of the row that will count
// it.
func (x *Exchange) count() string {
	f := &x.p.flood
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.timer == nil {
		f.timer = time.AfterFunc(floodPeriod, x.p.countFlood)
		f.id, f.reasons = audit.NewID(), map[string]int{}
	}
	f.reasons[x.row.Reason]++
	if len(f.hosts) <= maxFloodHosts && x.row.Host != "" && !slices.Contains(f.hosts, x.row.Host) {
		f.hosts = append(f.hosts, x.row.Host)
	}
	return f.id
}

// countFlood records the count, if there is one. Serve calls it when the last
// connection has ended, so that no count is lost.
func (p *Plane) countFlood() {
	p.flood.recording.Lock()
	defer p.flood.recording.Unlock()
	id, reasons, hosts := p.flood.take()
	if id == "" {
		return
	}
	a := Authority{}
	if len(hosts) == 1 {
		a.Host = hosts[0]
	}
	x := p.newExchange(Door{}, audit.SourceRequestBoundary, a, "", nil)
	x.row.Decision, x.row.Reason = audit.DecisionRejected, commonest(reasons)
	x.row.Status = Reason(x.row.Reason).meaning().status
	requests := 0
	for _, n := range reasons {
		requests += n
	}
	x.row.Fields["requests"], x.row.Fields["hosts"], x.row.Fields["reasons"] = requests, hosts[:min(len(hosts), maxFloodHosts)], reasons
	x.attribute()
	x.noteAs(id)
}

// take returns the count and begins a new one. The id is "" where nothing was
// counted.
func (f *flood) take() (id string, reasons map[string]int, hosts []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.timer == nil {
		return "", nil, nil
	}
	f.timer.Stop()
	id, reasons, hosts = f.id, f.reasons, f.hosts
	f.timer, f.id, f.reasons, f.hosts = nil, "", nil, nil
	return id, reasons, hosts
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
