package proxy

import (
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/ALRubinger/aileron/audit"
)

// A redirected connection that ends without a request is an attempt to reach
// something, and has a row. A port scan makes many of them: beyond these
// bounds they are counted, and each second has one row with their number.
const (
	silencesAtOnce  = 100
	silencesASecond = 10
	silencePeriod   = time.Second
	maxSilentHosts  = 8 // hosts named in a counting row
)

// silences counts the redirected connections that have no row of their own.
type silences struct {
	recording sync.Mutex // held while a count is recorded, which waits for the audit log

	mu          sync.Mutex
	timer       *time.Timer // records the count; nil: there is nothing to record
	count       int
	hosts       []string // the first few
	first, last uint16   // the lowest and the highest port
}

// silent records that a client opened a way to a and asked for nothing. A
// client's own CONNECT alone is no request and has no row.
func (p *Plane) silent(door Door, a Authority) {
	switch {
	case !door.Redirected:
	case p.silence.Allow():
		p.recordSilence(a, nil)
	default:
		p.unasked.add(a, p.countSilence)
	}
}

// add counts one, and has record called when the period is over.
func (s *silences) add(a Authority, record func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.timer == nil {
		s.timer = time.AfterFunc(silencePeriod, record)
		s.first = a.Port
	}
	s.count++
	s.first, s.last = min(s.first, a.Port), max(s.last, a.Port)
	if len(s.hosts) <= maxSilentHosts && !slices.Contains(s.hosts, a.Host) {
		s.hosts = append(s.hosts, a.Host)
	}
}

// countSilence records the count, if there is one. Serve calls it when the last
// connection has ended, so that no count is lost.
func (p *Plane) countSilence() {
	p.unasked.recording.Lock()
	defer p.unasked.recording.Unlock()
	if a, fields := p.unasked.take(); fields != nil {
		p.recordSilence(a, fields)
	}
}

// take returns the count and begins a new one. The fields are nil where nothing
// was counted.
func (s *silences) take() (a Authority, fields map[string]any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.timer == nil {
		return a, nil
	}
	s.timer.Stop()
	if len(s.hosts) == 1 {
		a.Host = s.hosts[0]
	}
	if s.first == s.last {
		a.Port = s.first
	}
	fields = map[string]any{"connections": s.count, "hosts": s.hosts[:min(len(s.hosts), maxSilentHosts)],
		"ports": strconv.Itoa(int(s.first)) + "-" + strconv.Itoa(int(s.last))}
	s.timer, s.count, s.hosts, s.first, s.last = nil, 0, nil, 0, 0
	return a, fields
}

// recordSilence records one connection, or as many as fields counts.
func (p *Plane) recordSilence(a Authority, fields map[string]any) {
	x := p.newExchange(Door{Redirected: true}, audit.SourceConnectTLS, a, "", nil)
	x.row.Method = http.MethodConnect
	x.row.Decision, x.row.Reason, x.row.Status = audit.DecisionRejected, string(reasonNoRequest), reasonNoRequest.meaning().status
	for name, value := range fields {
		x.row.Fields[name] = value
	}
	x.attribute()
	x.note()
}
