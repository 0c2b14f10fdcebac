package proxy

import (
	"net/http"
	"strconv"

	"github.com/ALRubinger/aileron/audit"
)

// A redirected connection that ends without a request is an attempt to reach
// something, and has a row. A port scan makes many of them: beyond these bounds
// they are counted, and each second has one row with their number.
const (
	silencesAtOnce    = 100
	silencesPerSecond = 10
)

// silences counts redirected connections that have no row of their own.
type silences struct {
	count       int
	hosts       someHosts
	first, last uint16 // the lowest and the highest port
}

// recordSilent records that a client connected to a and sent no request. A client's own
// CONNECT alone is no request and has no row.
func (p *Plane) recordSilent(listener Listener, a Authority) {
	switch {
	case !listener.Redirected:
	case p.silenceRate.Allow():
		p.recordSilence(a, nil)
	default:
		p.silent.add(p.countSilence, func(s *silences) { s.add(a) })
	}
}

func (s *silences) add(a Authority) {
	if s.count == 0 {
		s.first = a.Port
	}
	s.count++
	s.first, s.last = min(s.first, a.Port), max(s.last, a.Port)
	s.hosts.add(a.Host)
}

// countSilence records the count, if there is one. Serve calls it when the last
// connection has ended, so that no count is lost.
func (p *Plane) countSilence() {
	p.silent.flush(func(s silences) {
		a := Authority{Host: s.hosts.only()}
		if s.first == s.last {
			a.Port = s.first
		}
		p.recordSilence(a, map[string]any{"connections": s.count, "hosts": s.hosts.listed(),
			"ports": strconv.Itoa(int(s.first)) + "-" + strconv.Itoa(int(s.last))})
	})
}

// recordSilence records one connection, or as many as fields counts.
func (p *Plane) recordSilence(a Authority, fields map[string]any) {
	x := p.newExchange(Listener{Redirected: true}, audit.SourceConnectTLS, a, "", nil)
	x.row.Method = http.MethodConnect
	x.row.Decision, x.row.Reason = audit.DecisionRejected, string(reasonNoRequest)
	x.row.Status = reasonNoRequest.meaning().status
	for name, value := range fields {
		x.setField(name, value)
	}
	x.attribute()
	x.recordAsync()
}
