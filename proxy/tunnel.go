package proxy

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/ca"
	"github.com/ALRubinger/aileron/internal/panics"
	"github.com/ALRubinger/aileron/proxy/wire"
	"github.com/ALRubinger/aileron/proxy/wire/h2"
)

// firstRead is how much of what a client sends first is read at once: a usual
// ClientHello.
const firstRead = 2 << 10

// firsts holds buffers of that size, which tunnels need for a moment.
type firsts struct{ pool sync.Pool }

func (f *firsts) get() *[firstRead]byte {
	if buf, ok := f.pool.Get().(*[firstRead]byte); ok {
		return buf
	}
	return new([firstRead]byte)
}

// endsWith makes the deadline of a connection pass when ctx ends, until it is
// stopped.
func endsWith(ctx context.Context, conn net.Conn) (stop func() bool) {
	return context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
}

// serveTunnel serves what a client sends after the response to its CONNECT, and
// closes its connection.
func (p *Plane) serveTunnel(ctx context.Context, client net.Conn, a Authority, listener Listener) {
	defer client.Close()
	stop := endsWith(ctx, client)
	defer stop()
	buf := p.firsts.get()
	n, err := io.ReadAtLeast(client, buf[:], 1)
	if err != nil {
		p.firsts.pool.Put(buf)
		p.recordSilent(listener, a)
		return
	}
	conn := &prefixedConn{Conn: client, prefix: buf[:n], consumed: func() { p.firsts.pool.Put(buf) }}
	h := &tunnelHandler{p: p, ctx: ctx, authority: a, listener: listener, opened: stop}
	first := buf[:1]
	const tlsHandshake = 0x16
	switch {
	case first[0] == tlsHandshake:
		p.serveTLS(ctx, conn, h)
	case a.Port == 443 || first[0] < 'A' || first[0] > 'Z':
		p.rejectTunnel(listener, a, deny(reasonNotTLS, "the client speaks neither TLS nor HTTP in its tunnel"))
	default:
		h.scheme, h.source = "http", audit.SourceConnectHTTP
		p.serveHTTP1(ctx, conn, h)
	}
}

// serveTLS terminates the client's TLS and serves what is inside.
func (p *Plane) serveTLS(ctx context.Context, conn *prefixedConn, h *tunnelHandler) {
	h.scheme, h.source = "https", audit.SourceConnectTLS
	below := &ciphertext{prefixedConn: conn, tunnel: h, ahead: ahead{of: p.ahead}}
	secure := &plaintext{tls.Server(below, p.tls.forClient(conn)), below}
	if err := p.handshake(secure.Conn); err != nil {
		if d := p.denyHandshake(ctx, err); d != nil {
			p.rejectTunnel(h.listener, h.authority, d)
		}
		return
	}
	below.understood()
	if secure.ConnectionState().NegotiatedProtocol == "h2" {
		p.serveHTTP2(ctx, secure, h)
		return
	}
	p.serveHTTP1(ctx, secure, h)
}

func (p *Plane) serveHTTP2(ctx context.Context, conn net.Conn, h *tunnelHandler) {
	h.open(conn)
	opts := p.wireOptions()
	opts.Go = p.workers.run
	h2.Serve(ctx, conn, opts, h)
	h.ended()
}

func (p *Plane) serveHTTP1(ctx context.Context, conn net.Conn, h *tunnelHandler) {
	h.open(conn)
	wire.Serve(ctx, conn, p.wireOptions(), h)
	h.ended()
}

// wireOptions returns how what is inside a tunnel is served. The tunnel ends as
// soon as it is idle when the session ends, or when what its client may do has
// changed.
func (p *Plane) wireOptions() wire.Options {
	return wire.Options{Limits: p.cfg.Limits.Wire, Budget: p.budget, Drain: p.grants.Load().current, Log: p.cfg.Log}
}

// handshake does the handshake on a goroutine of its own: it is what needs the
// most stack, and the tunnel's goroutine would keep that for its life. The
// connection's deadline bounds it, and is in the past once the session has ended.
func (p *Plane) handshake(conn *tls.Conn) error {
	ended := make(chan error, 1)
	p.workers.run(func() {
		err := errPanicked
		defer func() {
			if recover() != nil {
				panics.Log(p.cfg.Log, "a handshake")
			}
			ended <- err
		}()
		err = conn.Handshake() //nolint:noctx // a context would cost a goroutine for each tunnel
	})
	return <-ended
}

var errPanicked = errors.New("do the handshake: it panicked")

// denyHandshake returns the denial of a client whose handshake failed, nil where
// the tunnel's own end is why.
func (p *Plane) denyHandshake(ctx context.Context, err error) *Denial {
	switch {
	case errors.Is(err, errUnread):
		return deny(reasonTLSClient, "the client's TLS handshake is too large")
	case errors.Is(err, errServerName):
		return deny(reasonAuthority, "the client's SNI is not the host of its CONNECT")
	case errors.Is(err, ca.ErrExpired), errors.Is(err, ca.ErrClockBack):
		p.outsideCA.Do(func() { p.cfg.Log.Warn("no client can be served", "error", err) })
		return deny(reasonCA, "the clock is outside the lifetime of the session's CA")
	case ctx.Err() != nil:
		return nil //nolint:nilerr // the end of the tunnel is why
	case errors.Is(err, os.ErrDeadlineExceeded):
		return deny(reasonSlow, "the client's TLS handshake took too long")
	}
	return deny(reasonTLSClient, "the client ended the TLS handshake; it may not trust the session's CA")
}

// rejectTunnel records a tunnel that ended before its first request.
func (p *Plane) rejectTunnel(listener Listener, a Authority, d *Denial) {
	x := p.newExchange(listener, audit.SourceConnectTLS, a, "", nil)
	x.row.Method = http.MethodConnect
	_ = x.reject(d) // there is no request to answer: the row is all
}
