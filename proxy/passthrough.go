package proxy

import (
	"net/http"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/spec"
)

// pass forwards, unmodified and written down, a request for a host that no
// connector names. It carries no credential of ours; private addresses are
// refused all the same. Hosts that a connector names are never passed: there,
// what no operation allows is denied.
func (p *Plane) pass(x *Exchange, t spec.Target) *http.Response {
	refuse := func(d *Denial) *http.Response { return x.reject(d).Response(x.request) }
	x.row.Path = plainPath(x.request.RequestURI)
	if d := x.enter(); d != nil {
		return refuse(d)
	}
	if x.asksForUpgrade() {
		if d := x.admitUpgrade(); d != nil {
			return refuse(d)
		}
	}
	if d := x.intend(); d != nil {
		return refuse(d)
	}
	x.target = t
	out, d := x.outbound(nil)
	if d != nil {
		return refuse(d)
	}
	res, d := p.upstream.roundTrip(out, x.journey())
	if d != nil {
		return refuse(d)
	}
	if res.StatusCode == http.StatusSwitchingProtocols {
		if d := x.inbound(res); d != nil {
			_ = res.Body.Close()
			return refuse(d)
		}
		return x.switched(res)
	}
	_ = dropOddNames(res)
	x.row.Status = res.StatusCode
	x.row.Event, x.row.Decision = audit.EventSandboxPassthrough, audit.DecisionPassthrough
	return x.endWith(res)
}
