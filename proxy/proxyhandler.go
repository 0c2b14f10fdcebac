package proxy

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/elazarl/goproxy"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/internal/hostport"
	"github.com/ALRubinger/aileron/internal/panics"
	"github.com/ALRubinger/aileron/proxy/wire"
)

// proxyHandler serves the proxy protocol on a listener's connections: CONNECT,
// requests in absolute form, and the session's API. goproxy dispatches; it never
// dials, verifies or signs anything for us.
type proxyHandler struct {
	p        *Plane
	listener Listener
	ctx      context.Context //nolint:containedctx // the listener's life, which every tunnel on it shares
	gp       *goproxy.ProxyHttpServer

	overflow Reason                   // why every request is denied; "": they are not
	full     map[Reason]*proxyHandler // of connections that are over a limit
}

var errNeverDial = errors.New("dial: goproxy must not dial")

func (p *Plane) newProxyHandler(ctx context.Context, listener Listener) *proxyHandler {
	h := &proxyHandler{p: p, listener: listener, ctx: ctx}
	gp := goproxy.NewProxyHttpServer()
	gp.Logger = log.New(io.Discard, "", 0)
	// goproxy's own transport does not verify, and its dialer reads
	// HTTPS_PROXY: neither may ever be reached.
	gp.Tr = &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
		return nil, errNeverDial
	}}
	gp.ConnectDial = func(string, string) (net.Conn, error) { return nil, errNeverDial }
	gp.ConnectDialWithReq = func(*http.Request, string, string) (net.Conn, error) { return nil, errNeverDial }
	gp.KeepAcceptEncoding = true
	// Without a CONNECT handler goproxy tunnels unmediated: this one is total.
	gp.OnRequest().HandleConnectFunc(func(string, *goproxy.ProxyCtx) (*goproxy.ConnectAction, string) {
		serve := func(r *http.Request, c net.Conn, _ *goproxy.ProxyCtx) {
			if own, ok := c.(*hijackedClient); ok {
				own.client.tunnel = h.connect(r, c)
			}
		}
		return &goproxy.ConnectAction{Action: goproxy.ConnectHijack, Hijack: serve}, ""
	})
	// A nil response would make goproxy dial. ServeHTTP leaves it no such request.
	gp.OnRequest().DoFunc(func(r *http.Request, _ *goproxy.ProxyCtx) (*http.Request, *http.Response) {
		return r, deny(reasonPanic, "the request was not answered on the wire").Response(r)
	})
	gp.NonproxyHandler = http.HandlerFunc(h.serveAPI)
	h.gp = gp
	return h
}

// withOverflow adds the handlers of the connections that are over a limit.
func (h *proxyHandler) withOverflow() *proxyHandler {
	h.full = map[Reason]*proxyHandler{}
	for _, reason := range []Reason{reasonConcurrency, reasonDescriptors} {
		h.full[reason] = h.p.newProxyHandler(h.ctx, h.listener)
		h.full[reason].overflow = reason
	}
	return h
}

// denyOverflow returns the denial of a connection that is over a limit.
func denyOverflow(reason Reason) *Denial {
	if reason == reasonDescriptors {
		return deny(reason, "the process has too many files and connections open")
	}
	return deny(reason, "the session has too many connections open")
}

// recovered keeps a bug in one exchange from ending the session.
func (p *Plane) recovered(where string) {
	if recover() != nil {
		panics.Log(p.cfg.Log, where)
	}
}

// clientConn serves one connection of a client.
type clientConn struct {
	*proxyHandler
	tunnel func() // serves the tunnel that a CONNECT opened; nil: none did
}

// serve serves conn until it ends. A tunnel is served when the wire has returned:
// most of them are idle most of the time, and what a CONNECT needed, stack
// included, would be kept for as long.
func (h *proxyHandler) serve(conn net.Conn, options wire.Options) {
	c := &clientConn{proxyHandler: h}
	wire.Serve(h.ctx, conn, options, c)
	if tunnel := c.tunnel; tunnel != nil {
		c.tunnel = nil
		tunnel()
	}
}

// ServeHTTP implements wire.Handler. A request in absolute form is served on
// the wire itself: goproxy would drop the error of a response that breaks off,
// and half of it would end as if it were all.
func (c *clientConn) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	own, ok := w.(*wire.ResponseWriter)
	switch {
	case ok && r.Method == http.MethodConnect:
		c.gp.ServeHTTP(&hijacker{own, c}, r)
	case ok && r.URL.IsAbs():
		_ = own.Respond(c.forward(r))
	default:
		c.gp.ServeHTTP(w, r)
	}
}

// hijacker is a ResponseWriter whose hijacked connection knows its client.
type hijacker struct {
	*wire.ResponseWriter
	client *clientConn
}

func (w *hijacker) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := w.ResponseWriter.Hijack()
	if err != nil {
		return nil, nil, err
	}
	return &hijackedClient{conn, w.client}, rw, nil
}

// hijackedClient is the connection of a client that sent a CONNECT.
type hijackedClient struct {
	net.Conn
	client *clientConn
}

// Refuse implements wire.Handler: it records a head that the wire rejected, and
// returns the denial.
func (h *proxyHandler) Refuse(fault *wire.ProtocolError) *http.Response {
	source := audit.SourceForwardHTTP
	if fault.Method == http.MethodConnect {
		source = audit.SourceConnectTLS
	}
	a, scheme := faultAuthority(fault)
	inner := &tunnelHandler{p: h.p, authority: a, scheme: scheme, source: source, listener: h.listener}
	return inner.Refuse(fault)
}

// faultAuthority returns what a rejected head names as far as it can be read:
// the zero value when that is nothing.
func faultAuthority(fault *wire.ProtocolError) (Authority, string) {
	if fault.Method == http.MethodConnect {
		a, _ := hostport.Parse(fault.Target, 0)
		return a, ""
	}
	a, scheme, malformed := ParseURL(fault.Target)
	if malformed != nil || !strings.ContainsAny(fault.Target[len(scheme)+len("://"):], "/?") {
		return Authority{}, "" // the target may have been cut off inside its host
	}
	return a, scheme
}

// authorize denies a request that may not pass this listener at all.
func (h *proxyHandler) authorize(r *http.Request) *Denial {
	switch {
	case h.overflow != "":
		return denyOverflow(h.overflow)
	case h.p.draining.Err() != nil:
		return deny(reasonDraining, "the session is ending")
	case !h.p.rate.Allow():
		return h.p.denyRate()
	case !h.listener.Sealed && !h.p.hasProxyToken(r):
		return deny(reasonToken, "the proxy requires this session's token")
	}
	return nil
}

// connect responds to a CONNECT on the client's hijacked connection, and returns
// what serves its tunnel and closes the connection, nil if there is none. Policy is
// not applied here: its denials are sent inside the tunnel, where a client shows
// them.
func (h *proxyHandler) connect(r *http.Request, conn net.Conn) (tunnel func()) {
	if own, ok := conn.(*hijackedClient); ok {
		conn = own.Conn
	}
	defer func() {
		if tunnel == nil {
			_ = conn.Close()
		}
	}()
	a, err := hostport.Parse(r.RequestURI, 0)
	d := h.authorize(r)
	if d == nil && err != nil {
		d = deny(reasonMalformed, "CONNECT names no plain host:port")
	}
	if d == nil && !h.hostAgrees(r, a, conn.LocalAddr()) {
		d = deny(reasonAuthority, "the Host of the CONNECT is neither its target nor this proxy")
	}
	if d != nil {
		x := h.p.newExchange(h.listener, audit.SourceConnectTLS, a, "", r)
		x.row.Path = ""
		writeResponse(conn, x.reject(d).Response(r))
		return nil
	}
	_ = conn.SetDeadline(time.Now().Add(h.p.cfg.Limits.Handshake))
	if h.ctx.Err() != nil {
		return nil // the deadline that ends the connection was just replaced
	}
	if _, err := io.WriteString(conn, "HTTP/1.1 200 Connection Established\r\n\r\n"); err != nil {
		return nil
	}
	if h.p.isTLSPassthrough(a) {
		return func() { h.p.passThroughTLS(h.ctx, conn, a, h.listener, r) }
	}
	return func() { h.p.serveTunnel(h.ctx, conn, a, h.listener) }
}

// hostAgrees reports whether the Host of a CONNECT for a may stand beside it.
// The request target alone decides where it leads (RFC 9110 section 7.2); a Host
// that names a third party is still denied, as is every other disagreement about
// the authority. None is sent by HTTP/1.0 clients, Python's among them, and the
// proxy's own name by Node.
func (h *proxyHandler) hostAgrees(r *http.Request, a Authority, at net.Addr) bool {
	if r.Host == "" || h.listener.isNamed(r.Host, at) {
		return true
	}
	host, err := hostport.Parse(r.Host, a.Port)
	return err == nil && host == a
}

// writeResponse writes a denial outside the wire, and ends the connection.
func writeResponse(c net.Conn, res *http.Response) {
	res.Header.Set("Connection", "close")
	_ = c.SetDeadline(time.Now().Add(5 * time.Second))
	if res.Write(c) != nil {
		return
	}
	if half, ok := c.(interface{ CloseWrite() error }); ok && half.CloseWrite() == nil {
		_ = c.SetReadDeadline(time.Now().Add(time.Second))
		_, _ = io.CopyN(io.Discard, c, 64<<10)
	}
}

// forward serves a request in absolute form (RFC 9112 section 3.2.2).
func (h *proxyHandler) forward(r *http.Request) *http.Response {
	a, scheme, malformed := ParseURL(r.RequestURI)
	d := h.authorize(r)
	if d == nil && malformed != nil {
		d = malformed
	}
	if d == nil && scheme == "https" && !h.listener.Sealed {
		d = deny(reasonScheme, "an https:// target came in clear")
	}
	if d != nil {
		return h.p.newExchange(h.listener, audit.SourceForwardHTTP, a, scheme, r).reject(d).Response(r)
	}
	inner := &tunnelHandler{
		p: h.p, ctx: h.ctx, authority: a, scheme: scheme, source: audit.SourceForwardHTTP, listener: h.listener,
	}
	return inner.Answer(r)
}

// serveAPI serves a request that is not for a proxy: the session's API.
func (h *proxyHandler) serveAPI(w http.ResponseWriter, r *http.Request) {
	own, ok := w.(*wire.ResponseWriter)
	if !ok {
		return
	}
	allowed, form := h.p.rate.Allow(), formOf(r)
	var res *http.Response
	switch {
	case h.overflow != "":
		x := h.p.newExchange(h.listener, audit.SourceForwardHTTP, Authority{}, "http", r)
		res = x.reject(denyOverflow(h.overflow)).Response(r)
	case r.Host != "" && !h.listener.isNamed(r.Host, own.LocalAddr()):
		res = h.p.rejectAPI(h.listener, r, deny(reasonAuthority, "the Host is no name of this session"))
	case !allowed:
		res = h.p.rejectAPI(h.listener, r, h.p.denyRate())
	default:
		res = h.p.api(h.listener, r)
	}
	_ = own.Respond(inForm(form, res))
}
