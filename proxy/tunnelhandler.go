package proxy

import (
	"context"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/internal/panics"
	"github.com/ALRubinger/aileron/proxy/wire"
)

// tunnelHandler serves the requests of one tunnel, or one request in absolute
// form: its authority is fixed.
type tunnelHandler struct {
	p         *Plane
	ctx       context.Context //nolint:containedctx // the tunnel's life, which an upgraded connection shares
	authority Authority
	scheme    string
	source    audit.Source
	listener  Listener
	opened    func() bool // ends what bounds the handshake; nil: it was called
	asked     atomic.Bool // a request came
}

// open ends the bounds of the handshake: from now on the wire has its own, and
// ends the connection if the tunnel's context has ended meanwhile.
func (h *tunnelHandler) open(conn net.Conn) {
	h.opened()
	h.opened = nil
	_ = conn.SetDeadline(time.Time{})
}

// ServeHTTP implements wire.Handler.
func (h *tunnelHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	own, ok := w.(*wire.ResponseWriter)
	if !ok {
		return
	}
	res := h.Answer(r)
	if up, ok := res.Body.(*upgraded); ok {
		up.serve(own, res)
		return
	}
	_ = own.Respond(res)
}

// Answer implements h2.Handler: it decides about a client's request and carries
// the decision out.
func (h *tunnelHandler) Answer(r *http.Request) (res *http.Response) {
	h.asked.Store(true)
	p := h.p
	x := p.newExchange(h.listener, h.source, h.authority, h.scheme, r)
	x.tunnel = h.ctx
	defer func() {
		if recover() != nil {
			panics.Log(p.cfg.Log, "an exchange", "request_id", x.row.RequestID)
			res = x.reject(deny(reasonPanic, "aileron failed while it served this request")).Response(r)
		}
	}()
	if x.sent != nil {
		r.Body = x.sent
	}
	if h.source != audit.SourceForwardHTTP && !p.rate.Allow() { // proxyHandler has counted those
		return x.reject(p.denyRate()).Response(r)
	}
	decision := Decide(x.question(r))
	if decision.Verdict == SessionAPI {
		return p.api(h.listener, r)
	}
	x.decided(decision)
	res, d := p.Do(x)
	if d != nil {
		return d.Response(r)
	}
	return res
}

// Refuse implements wire.Handler and h2.Handler: it records a head that
// the wire rejected, and returns the denial.
func (h *tunnelHandler) Refuse(f *wire.ProtocolError) *http.Response {
	h.asked.Store(true)
	x := h.p.newExchange(h.listener, h.source, h.authority, h.scheme, nil)
	x.row.Method, x.row.Path = f.Method, plainPath(f.Target)
	return x.reject(denyFault(f)).Response(nil)
}

// ended records a connection that ended without a request.
func (h *tunnelHandler) ended() {
	if !h.asked.Load() {
		h.p.recordSilent(h.listener, h.authority)
	}
}

// prefixedConn is a connection of which some bytes have been read already.
type prefixedConn struct {
	net.Conn
	prefix   []byte
	consumed func() // called once prefix has been read; nil: nothing has to be done then
}

func (c *prefixedConn) Read(p []byte) (int, error) {
	if len(c.prefix) > 0 {
		n := copy(p, c.prefix)
		c.prefix = c.prefix[n:]
		if len(c.prefix) == 0 {
			c.prefix = nil
			if c.consumed != nil {
				c.consumed()
			}
		}
		return n, nil
	}
	return c.Conn.Read(p)
}

// NetConn returns the connection below.
func (c *prefixedConn) NetConn() net.Conn { return c.Conn }

// CloseWrite ends the outbound half where the connection can.
func (c *prefixedConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}
