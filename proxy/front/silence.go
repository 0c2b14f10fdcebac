package front

import (
	"net/http"
	"strconv"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/proxy"
	"github.com/ALRubinger/aileron/proxy/internal/summary"
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
	hosts       summary.Hosts
	first, last uint16 // the lowest and the highest port
}

// recordSilent records that a client connected and sent no request. A client's own
// CONNECT alone is no request and has no row.
func (f *Front) recordSilent(at proxy.Arrival) {
	switch {
	case !at.Redirected:
	case f.silenceRate.Allow():
		f.recordSilence(at.Authority, nil)
	default:
		f.silent.Add(f.countSilence, func(s *silences) { s.add(at.Authority) })
	}
}

func (s *silences) add(a proxy.Authority) {
	if s.count == 0 {
		s.first = a.Port
	}
	s.count++
	s.first, s.last = min(s.first, a.Port), max(s.last, a.Port)
	s.hosts.Add(a.Host)
}

// recordUnasked records that a client connected to the listener itself and sent
// nothing, or that there was not even room to deny it. It names no host: such
// connections are only counted.
func (f *Front) recordUnasked() { f.unasked.Add(f.countUnasked, func(n *int) { *n++ }) }

func (f *Front) countUnasked() {
	f.unasked.Flush(func(n int) {
		x := f.plane.Begin(proxy.Arrival{Source: audit.SourceRequestBoundary}, nil)
		x.RejectSoon(proxy.ReasonNoRequest, map[string]any{"connections": n})
	})
}

// countSilence records the count, if there is one. Serve calls it when the last
// connection has ended, so that no count is lost.
func (f *Front) countSilence() {
	f.silent.Flush(func(s silences) {
		a := proxy.Authority{Host: s.hosts.Only()}
		if s.first == s.last {
			a.Port = s.first
		}
		f.recordSilence(a, map[string]any{"connections": s.count, "hosts": s.hosts.Listed(),
			"ports": strconv.Itoa(int(s.first)) + "-" + strconv.Itoa(int(s.last))})
	})
}

// recordSilence records one connection, or as many as fields counts.
func (f *Front) recordSilence(a proxy.Authority, fields map[string]any) {
	at := proxy.Arrival{Redirected: true, Source: audit.SourceConnectTLS, Authority: a}
	f.plane.Begin(at, nil).Name(http.MethodConnect, "").RejectSoon(proxy.ReasonNoRequest, fields)
}
