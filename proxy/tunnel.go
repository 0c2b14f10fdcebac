package proxy

import (
	"context"
	"net"

	"github.com/ALRubinger/aileron/audit"
)

// Tunnel is a connection to the host of a tunnel that is not decrypted.
type Tunnel struct {
	net.Conn
	x       *Exchange
	release func()
}

// Connect is Do for a tunnel that is not decrypted: it carries no credential, and its bytes are the client's own.
// memory is what it takes of the session's. A denial has been recorded when it is returned.
func (p *Plane) Connect(ctx context.Context, x *Exchange, memory int64) (*Tunnel, *Denial) {
	if d := x.enter(); d != nil {
		return nil, x.Reject(d)
	}
	hold := p.budget.Conn().Hold(nil)
	server, d := x.connect(ctx, hold.Take(memory))
	if d != nil {
		hold.Release()
		return nil, x.Reject(d)
	}
	x.row.Event, x.row.Decision = audit.EventSandboxPassthrough, audit.DecisionPassthrough
	x.row.Reason = ReasonTunnelHost
	return &Tunnel{server, x, hold.Release}, nil
}

func (x *Exchange) connect(ctx context.Context, room bool) (net.Conn, *Denial) {
	if !room {
		return nil, DenyMemory()
	}
	// It may last for days, so that the intent is recorded as well.
	if d := x.recordIntent(); d != nil {
		return nil, d
	}
	a := x.at.Authority
	server, err := x.p.upstream.Dial(ctx, a.String())
	if err != nil {
		return nil, denyUpstream(a.Host, err, false)
	}
	return server, nil
}

// End records the outcome, with the bytes that each side sent.
func (t *Tunnel) End(sent, received int64) {
	defer t.release()
	x := t.x
	x.row.RequestBytes, x.row.ResponseBytes = sent, received
	x.recordAsync()
	x.endCapture()
	x.leave()
}
