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
	"time"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/ca"
	"github.com/ALRubinger/aileron/internal/hostport"
	"github.com/ALRubinger/aileron/internal/panics"
	"github.com/ALRubinger/aileron/proxy/wire"
	"github.com/ALRubinger/aileron/proxy/wire/h2"
)

// clientTLS returns what every handshake with a client starts from. The ticket
// keys are the session's, so that clients resume; every exchange is judged by its
// tunnel's authority all the same, resumed or not.
func clientTLS() *tls.Config {
	cfg := &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1", "http/1.0"}}
	var key [32]byte
	_, _ = rand.Read(key[:])
	cfg.SetSessionTicketKeys([][32]byte{key})
	return cfg
}

var errServerName = errors.New("the client's SNI is not the authority of its tunnel")

// serveTunnel serves what a client sends after its CONNECT was answered.
func (p *Plane) serveTunnel(ctx context.Context, client net.Conn, a Authority, listener Listener) {
	first := make([]byte, 1)
	if _, err := io.ReadFull(client, first); err != nil {
		p.recordSilent(listener, a)
		return
	}
	conn := &prefixedConn{Conn: client, prefix: first}
	h := &tunnelHandler{p: p, ctx: ctx, authority: a, listener: listener}
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

// serveTLS terminates the client's TLS and serves what is inside. The client's
// SNI must be the tunnel's authority. A client that dialled a bare address, and
// was redirected, names its host with it: the proxy resolves the name, and the
// address is forgotten.
func (p *Plane) serveTLS(ctx context.Context, conn *prefixedConn, h *tunnelHandler) {
	h.scheme, h.source = "https", audit.SourceConnectTLS
	cfg := p.tls.Clone()
	cfg.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		if hello.ServerName == "" {
			return nil, nil
		}
		named, err := hostport.Parse(hello.ServerName, h.authority.Port)
		if err == nil && h.listener.Redirected && h.authority.Addr.IsValid() && !named.Addr.IsValid() {
			h.authority = named
		}
		if err != nil || named != h.authority {
			return nil, errServerName
		}
		return nil, nil
	}
	cfg.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return p.cfg.CA.Leaf(h.authority.Host) }
	below := &ciphertext{prefixedConn: conn}
	secure := &plaintext{tls.Server(below, cfg), below}
	if err := handshakeTLS(ctx, secure.Conn, p.cfg.Log); err != nil {
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
	_ = conn.SetDeadline(time.Time{})
	drain, stop := p.drain()
	defer stop()
	h2.Serve(ctx, conn, wire.Options{Limits: p.cfg.Limits.Wire, Budget: p.budget, Drain: drain, Log: p.cfg.Log}, h)
	h.ended()
}

func (p *Plane) serveHTTP1(ctx context.Context, conn net.Conn, h *tunnelHandler) {
	_ = conn.SetDeadline(time.Time{})
	drain, stop := p.drain()
	defer stop()
	wire.Serve(ctx, conn, wire.Options{Limits: p.cfg.Limits.Wire, Budget: p.budget, Drain: drain, Log: p.cfg.Log}, h)
	h.ended()
}

// drain returns a context that is done when a tunnel is to end as soon as it is
// idle: because the session ends, or because what its client may do has changed.
func (p *Plane) drain() (context.Context, func()) {
	ctx, cancel := context.WithCancel(p.draining)
	stop := context.AfterFunc(p.grants.Load().current, cancel)
	return ctx, func() { stop(); cancel() }
}

// handshakeTLS does the handshake in a goroutine of its own: it is what needs
// the most stack, and the tunnel's goroutine would keep that for its life.
func handshakeTLS(ctx context.Context, conn *tls.Conn, log *slog.Logger) error {
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
	}
	return deny(reasonTLSClient, "the client ended the TLS handshake; it may not trust the session's CA")
}

// rejectTunnel records a tunnel that ended before its first request.
func (p *Plane) rejectTunnel(listener Listener, a Authority, d *Denial) {
	x := p.newExchange(listener, audit.SourceConnectTLS, a, "", nil)
	x.row.Method = http.MethodConnect
	_ = x.reject(d) // there is no request to answer: the row is all
}
