package front

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/ca"
	"github.com/ALRubinger/aileron/internal/panics"
	"github.com/ALRubinger/aileron/proxy"
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
func (f *Front) serveTunnel(client net.Conn, h *tunnel) {
	ctx := h.at.Life
	defer client.Close()
	stop := endsWith(ctx, client)
	defer stop()
	buf := f.firsts.get()
	n, err := io.ReadAtLeast(client, buf[:], 1)
	if err != nil {
		f.firsts.pool.Put(buf)
		f.recordSilent(h.at)
		return
	}
	conn := &prefixedConn{Conn: client, prefix: buf[:n], consumed: func() { f.firsts.pool.Put(buf) }}
	h.opened = stop
	first := buf[:1]
	const tlsHandshake = 0x16
	switch {
	case first[0] == tlsHandshake:
		f.serveTLS(ctx, conn, h)
	case bytes.HasPrefix(buf[:n], []byte(sshVersion)):
		f.rejectSSH(conn, h.at)
	case h.at.Authority.Port == 443 || first[0] < 'A' || first[0] > 'Z':
		f.rejectTunnel(h.at, proxy.ReasonNotTLS.Deny("the client speaks neither TLS nor HTTP in its tunnel"))
	default:
		h.at.Scheme, h.at.Source = "http", audit.SourceConnectHTTP
		f.serveHTTP1(ctx, conn, h)
	}
}

// serveTLS terminates the client's TLS and serves what is inside.
func (f *Front) serveTLS(ctx context.Context, conn *prefixedConn, h *tunnel) {
	h.at.Scheme = "https"
	below := &ciphertext{prefixedConn: conn, tunnel: h, ahead: ahead{of: f.ahead}}
	secure := &plaintext{tls.Server(below, f.tls.forClient(conn)), below}
	if err := f.handshake(secure.Conn); err != nil {
		if d := f.denyHandshake(ctx, err); d != nil {
			f.rejectTunnel(h.at, d)
		}
		return
	}
	below.understood()
	if secure.ConnectionState().NegotiatedProtocol == "h2" {
		f.serveHTTP2(ctx, secure, h)
		return
	}
	f.serveHTTP1(ctx, secure, h)
}

func (f *Front) serveHTTP2(ctx context.Context, conn net.Conn, h *tunnel) {
	h.open(conn)
	opts := f.wireOptions()
	opts.Go = f.workers.run
	h2.Serve(ctx, conn, opts, h)
	h.ended()
}

func (f *Front) serveHTTP1(ctx context.Context, conn net.Conn, h *tunnel) {
	h.open(conn)
	wire.Serve(ctx, conn, f.wireOptions(), h)
	h.ended()
}

// wireOptions returns how what is inside a tunnel is served. The tunnel ends as
// soon as it is idle when the session ends, or when what its client may do has
// changed.
func (f *Front) wireOptions() wire.Options {
	return wire.Options{Limits: f.cfg.Limits.Wire, Budget: f.plane.Budget(),
		Drain: f.plane.Grants().InForce(), Log: f.cfg.Log}
}

// handshake does the handshake on a goroutine of its own: it is what needs the
// most stack, and the tunnel's goroutine would keep that for its life. The
// connection's deadline bounds it, and is in the past once the session has ended.
func (f *Front) handshake(conn *tls.Conn) error {
	ended := make(chan error, 1)
	f.workers.run(func() {
		err := errPanicked
		defer func() {
			if recover() != nil {
				panics.Log(f.cfg.Log, "a handshake")
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
func (f *Front) denyHandshake(ctx context.Context, err error) *proxy.Denial {
	switch {
	case errors.Is(err, errUnread):
		return proxy.ReasonTLSClient.Deny("the client's TLS handshake is too large")
	case errors.Is(err, errServerName):
		return proxy.ReasonAuthority.Deny("the client's SNI is not the host of its CONNECT")
	case errors.Is(err, ca.ErrExpired), errors.Is(err, ca.ErrClockBack):
		f.outsideCA.Do(func() { f.cfg.Log.Warn("no client can be served", "error", err) })
		return proxy.ReasonCA.Deny("the clock is outside the lifetime of the session's CA")
	case ctx.Err() != nil:
		return nil //nolint:nilerr // the end of the tunnel is why
	case errors.Is(err, os.ErrDeadlineExceeded):
		return proxy.ReasonSlow.Deny("the client's TLS handshake took too long")
	}
	return proxy.ReasonTLSClient.Deny("the client ended the TLS handshake; it may not trust the session's CA")
}

// rejectTunnel records a tunnel that ended before its first request.
func (f *Front) rejectTunnel(at proxy.Arrival, d *proxy.Denial) {
	at.Scheme = ""
	_ = f.plane.Begin(at, nil).Name(http.MethodConnect, "").Reject(d) // there is no request to answer: the row is all
}

// tunnel serves the requests of one tunnel, or one request in absolute form: its
// authority is fixed.
type tunnel struct {
	front  *Front
	at     proxy.Arrival
	sealed bool // its listener is

	counted        bool // the rate has counted its request
	operationsOnly bool // what is no operation of a connector is denied, whatever the session passes through

	opened func() bool // ends what bounds the handshake; nil: it was called
	asked  atomic.Bool // a request came
}

// open ends the bounds of the handshake: from now on the wire has its own, and
// ends the connection if the tunnel's context has ended meanwhile.
func (h *tunnel) open(conn net.Conn) {
	h.opened()
	h.opened = nil
	_ = conn.SetDeadline(time.Time{})
}

// ServeHTTP implements wire.Handler.
func (h *tunnel) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	own, ok := w.(*wire.ResponseWriter)
	if !ok {
		return
	}
	res := h.Answer(r)
	if up, ok := res.Body.(*proxy.Upgraded); ok {
		up.Serve(own, res)
		return
	}
	_ = own.Respond(res)
}

// Answer implements h2.Handler: it decides about a client's request and carries
// the decision out.
func (h *tunnel) Answer(r *http.Request) (res *http.Response) {
	h.asked.Store(true)
	f := h.front
	x := f.plane.Begin(h.at, r)
	defer func() {
		if recover() != nil {
			panics.Log(f.cfg.Log, "an exchange", "request_id", x.RequestID())
			d := proxy.ReasonPanic.Deny("aileron failed while it served this request")
			res = x.Reject(d).Response(r)
		}
	}()
	r.Body = x.Body(r.Body)
	if !h.counted && !f.rate.Allow() {
		return x.Reject(f.denyRate()).Response(r)
	}
	decision := proxy.Decide(x.Question())
	if decision.Verdict == proxy.SessionAPI {
		return f.api.Answer(f.clientOf(r, h.at.Redirected, h.sealed), r)
	}
	if decision.Verdict == proxy.Passthrough && h.operationsOnly {
		decision = proxy.Denied(proxy.ReasonHost.Deny("no installed connector allows %s", h.at.Authority.Host))
	}
	x.Decided(decision)
	res, d := f.plane.Do(x)
	if d != nil {
		return d.Response(r)
	}
	return res
}

// Refuse implements wire.Handler and h2.Handler: it records a head that
// the wire rejected, and returns the denial.
func (h *tunnel) Refuse(fault *wire.ProtocolError) *http.Response {
	h.asked.Store(true)
	x := h.front.plane.Begin(h.at, nil).Name(fault.Method, fault.Target)
	return x.Reject(proxy.DenyFault(fault)).Response(nil)
}

// ended records a connection that ended without a request.
func (h *tunnel) ended() {
	if !h.asked.Load() {
		h.front.recordSilent(h.at)
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
