package proxy

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/ca"
	"github.com/ALRubinger/aileron/internal/hostport"
	"github.com/ALRubinger/aileron/internal/panics"
	"github.com/ALRubinger/aileron/proxy/wire"
	"github.com/ALRubinger/aileron/proxy/wire/h2"
)

// APIHost is the name under which a box reaches its own session's API. It is
// never resolved.
const APIHost = "aileron.internal"

// clientTLS is what every handshake with the box starts from. The ticket keys
// are the session's, so that clients resume; every exchange is judged by its
// tunnel's authority all the same, resumed or not.
func clientTLS() *tls.Config {
	cfg := &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1", "http/1.0"}}
	var key [32]byte
	_, _ = rand.Read(key[:])
	cfg.SetSessionTicketKeys([][32]byte{key})
	return cfg
}

var errServerName = errors.New("the client's SNI is not the authority of its tunnel")

// tunnel serves what a client sends after its CONNECT was answered.
func (p *Plane) tunnel(ctx context.Context, client net.Conn, a Authority, door Door) {
	first := make([]byte, 1)
	if _, err := io.ReadFull(client, first); err != nil {
		p.silent(door, a)
		return
	}
	conn := &peeked{Conn: client, first: first}
	const tlsHandshake = 0x16
	if first[0] != tlsHandshake {
		if a.Port == 443 || first[0] < 'A' || first[0] > 'Z' {
			p.refuseTunnel(door, a, deny(reasonNotTLS, "the client speaks neither TLS nor HTTP in its tunnel"))
			return
		}
		p.serveInside(ctx, conn, &inside{p: p, ctx: ctx, a: a, scheme: "http", source: audit.SourceConnectHTTP, door: door})
		return
	}
	cfg := p.tls.Clone()
	cfg.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		if hello.ServerName == "" {
			return nil, nil
		}
		named, err := hostport.Parse(hello.ServerName, a.Port)
		if err == nil && door.Redirected && a.Addr.IsValid() && !named.Addr.IsValid() {
			// The client dialled a bare address and says here which name it
			// means. The name is what we resolve; the address is forgotten.
			a = named
		}
		if err != nil || named != a {
			return nil, errServerName
		}
		return nil, nil
	}
	cfg.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return p.cfg.CA.Leaf(a.Host) }
	below := &ciphertext{peeked: conn}
	secure := &plaintext{tls.Server(below, cfg), below}
	if err := shakeHands(ctx, secure.Conn, p.cfg.Log); err != nil {
		switch {
		case errors.Is(err, errUnread):
			p.refuseTunnel(door, a, deny(reasonTLSClient, "the client's TLS handshake is too large"))
		case errors.Is(err, errServerName):
			p.refuseTunnel(door, a, deny(reasonAuthority, "the client's SNI is not the host of its CONNECT"))
		case errors.Is(err, ca.ErrExpired), errors.Is(err, ca.ErrClockBack):
			p.outsideCA.Do(func() { p.cfg.Log.Warn("no client can be served", "error", err) })
			p.refuseTunnel(door, a, deny(reasonCA, "the clock is outside the lifetime of the session's CA"))
		case ctx.Err() == nil:
			p.refuseTunnel(door, a, deny(reasonTLSClient, "the client ended the TLS handshake; it may not trust the session's CA"))
		}
		return
	}
	below.understood()
	h := &inside{p: p, ctx: ctx, a: a, scheme: "https", source: audit.SourceConnectTLS, door: door}
	if secure.ConnectionState().NegotiatedProtocol == "h2" {
		_ = secure.SetDeadline(time.Time{})
		drain, stop := p.drain()
		defer stop()
		h2.Serve(ctx, secure, wire.Options{Limits: p.cfg.Limits.Wire, Budget: p.budget, Drain: drain, Log: p.cfg.Log}, h)
		h.ended()
		return
	}
	p.serveInside(ctx, secure, h)
}

func (p *Plane) serveInside(ctx context.Context, conn net.Conn, h *inside) {
	_ = conn.SetDeadline(time.Time{})
	drain, stop := p.drain()
	defer stop()
	wire.Serve(ctx, conn, wire.Options{Limits: p.cfg.Limits.Wire, Budget: p.budget, Drain: drain, Log: p.cfg.Log}, h)
	h.ended()
}

// drain is done when a tunnel is to end as soon as it is idle: because the
// session ends, or because what its client may do has changed.
func (p *Plane) drain() (context.Context, func()) {
	ctx, cancel := context.WithCancel(p.draining)
	stop := context.AfterFunc(p.grants.Load().current, cancel)
	return ctx, func() { stop(); cancel() }
}

// shakeHands does the handshake in a goroutine of its own: it is what needs
// the most stack, and the tunnel's goroutine would keep that for its life.
func shakeHands(ctx context.Context, conn *tls.Conn, log *slog.Logger) error {
	ended := make(chan error)
	go func() {
		err := errPanicked
		defer func() {
			if recover() != nil {
				panics.Log(log, "a handshake")
			}
			ended <- err
		}()
		err = conn.HandshakeContext(ctx)
	}()
	return <-ended
}

var errPanicked = errors.New("do the handshake: it panicked")

// refuseTunnel writes down a tunnel that ended before its first request.
func (p *Plane) refuseTunnel(door Door, a Authority, d *Denial) {
	x := p.newExchange(door, audit.SourceConnectTLS, a, "", nil)
	x.row.Method = http.MethodConnect
	_ = x.reject(d) // there is no request to answer: the row is all
}

// Refuse implements wire.Handler and h2.Handler: it records and answers a head
// that the wire refused.
func (i *inside) Refuse(f *wire.Fault) *http.Response {
	i.asked.Store(true)
	reason := reasonMalformed
	switch {
	case f.Memory:
		reason = reasonMemory
	case f.Status == http.StatusRequestTimeout:
		reason = reasonSlow
	case f.Status == http.StatusRequestHeaderFieldsTooLarge:
		reason = reasonHeadTooLarge
	case f.Status == http.StatusRequestEntityTooLarge:
		reason = reasonTooLarge
	case f.Status == http.StatusTooManyRequests:
		reason = reasonConcurrency
	case f.Status == http.StatusServiceUnavailable:
		reason = reasonDraining
	}
	x := i.p.newExchange(i.door, i.source, i.a, i.scheme, nil)
	x.row.Method, x.row.Path = f.Method, plainPath(f.Target)
	d := deny(reason, "%s", f.Reason)
	if d.Status() == http.StatusBadRequest {
		d.status = f.Status // 414, 417, 501 and 505 are closer than 400
	}
	return x.reject(d).Response(nil)
}

// inside is the handler of a tunnel, or of one request in absolute form: its
// authority is fixed.
type inside struct {
	p      *Plane
	ctx    context.Context //nolint:containedctx // the tunnel's life, which an upgraded connection shares
	a      Authority
	scheme string
	source audit.Source
	door   Door
	asked  atomic.Bool // a request came
}

// ServeHTTP implements wire.Handler.
func (i *inside) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	own, ok := w.(*wire.ResponseWriter)
	if !ok {
		return
	}
	res := i.Answer(r)
	if up, ok := res.Body.(*upgraded); ok {
		up.serve(own, res)
		return
	}
	_ = own.Respond(res)
}

// ended records a connection that ended without a request.
func (i *inside) ended() {
	if !i.asked.Load() {
		i.p.silent(i.door, i.a)
	}
}

func (p *Plane) tooFast() *Denial {
	return deny(reasonRate, "the session takes %d requests a second at most", p.cfg.Limits.Rate)
}

// Answer implements h2.Handler: it decides about a client's request and carries
// the decision out.
func (i *inside) Answer(r *http.Request) (res *http.Response) {
	i.asked.Store(true)
	p := i.p
	x := p.newExchange(i.door, i.source, i.a, i.scheme, r)
	x.tunnel = i.ctx
	defer func() {
		if recover() != nil {
			panics.Log(p.cfg.Log, "an exchange", "request_id", x.row.Fields["request_id"])
			res = x.reject(deny(reasonPanic, "aileron failed while it served this request")).Response(r)
		}
	}()
	if x.sent != nil {
		r.Body = x.sent
	}
	if i.source != audit.SourceForwardHTTP && !p.rate.Allow() { // the front has counted those
		return x.reject(p.tooFast()).Response(r)
	}
	decision := Decide(x.question(r))
	if decision.Verdict == SessionAPI {
		return p.api(i.door, r)
	}
	x.decided(decision)
	res, d := p.Do(x)
	if d != nil {
		return d.Response(r)
	}
	return res
}

// peeked gives back the byte that told TLS from plain text.
type peeked struct {
	net.Conn
	first []byte
}

func (c *peeked) Read(p []byte) (int, error) {
	if len(c.first) > 0 {
		n := copy(p, c.first)
		c.first = c.first[n:]
		return n, nil
	}
	return c.Conn.Read(p)
}

// NetConn is the connection below.
func (c *peeked) NetConn() net.Conn { return c.Conn }

// CloseWrite ends the outbound half where the connection can.
func (c *peeked) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}
