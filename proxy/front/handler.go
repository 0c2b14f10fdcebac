package front

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
	"github.com/ALRubinger/aileron/proxy"
	"github.com/ALRubinger/aileron/proxy/api"
	"github.com/ALRubinger/aileron/proxy/wire"
)

// handler serves the proxy protocol on a listener's connections: CONNECT,
// requests in absolute form, and the session's API. goproxy dispatches; it never
// dials, verifies or signs anything for us.
type handler struct {
	front    *Front
	listener Listener
	ctx      context.Context //nolint:containedctx // the listener's life, which every tunnel on it shares
	gp       *goproxy.ProxyHttpServer

	overflow proxy.Reason              // why every request is denied; "": they are not
	full     map[proxy.Reason]*handler // of connections that are over a limit
}

var errNeverDial = errors.New("dial: goproxy must not dial")

func (f *Front) newHandler(ctx context.Context, listener Listener) *handler {
	h := &handler{front: f, listener: listener, ctx: ctx}
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
		return r, proxy.ReasonPanic.Deny("the request was not answered on the wire").Response(r)
	})
	gp.NonproxyHandler = http.HandlerFunc(h.serveAPI)
	h.gp = gp
	return h
}

// withOverflow adds the handlers of the connections that are over a limit.
func (h *handler) withOverflow() *handler {
	h.full = map[proxy.Reason]*handler{}
	for _, reason := range []proxy.Reason{proxy.ReasonConcurrency, proxy.ReasonDescriptors} {
		h.full[reason] = h.front.newHandler(h.ctx, h.listener)
		h.full[reason].overflow = reason
	}
	return h
}

// denyOverflow returns the denial of a connection that is over a limit.
func denyOverflow(reason proxy.Reason) *proxy.Denial {
	if reason == proxy.ReasonDescriptors {
		return reason.Deny("the process has too many files and connections open")
	}
	return reason.Deny("the session has too many connections open")
}

// clientConn serves one connection of a client.
type clientConn struct {
	*handler
	tunnel func() // serves the tunnel that a CONNECT opened; nil: none did
	asked  bool   // a request came, or what was none and was denied
}

// serve serves conn until it ends. A tunnel is served when the wire has returned:
// most of them are idle most of the time, and what a CONNECT needed, stack
// included, would be kept for as long.
func (h *handler) serve(conn net.Conn, options wire.Options) {
	c := &clientConn{handler: h}
	wire.Serve(h.ctx, conn, options, c)
	if !c.asked {
		h.front.recordUnasked()
	}
	if tunnel := c.tunnel; tunnel != nil {
		c.tunnel = nil
		tunnel()
	}
}

// ServeHTTP implements wire.Handler. A request in absolute form is served on
// the wire itself: goproxy would drop the error of a response that breaks off,
// and half of it would end as if it were all.
func (c *clientConn) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.asked = true
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

// Refuse implements wire.Handler.
func (c *clientConn) Refuse(fault *wire.ProtocolError) *http.Response {
	c.asked = true
	return c.handler.Refuse(fault)
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

// Refuse records a head that the wire rejected, and returns the denial.
func (h *handler) Refuse(fault *wire.ProtocolError) *http.Response {
	source := audit.SourceForwardHTTP
	if fault.Method == http.MethodConnect {
		source = audit.SourceConnectTLS
	}
	a, scheme := faultAuthority(fault)
	return h.tunnel(h.arrival(source, a, scheme)).Refuse(fault)
}

// arrival returns what is known of a request at the listener.
func (h *handler) arrival(source audit.Source, a proxy.Authority, scheme string) proxy.Arrival {
	return proxy.Arrival{Source: source, Redirected: h.listener.Redirected, Authority: a, Scheme: scheme, Life: h.ctx}
}

func (h *handler) tunnel(at proxy.Arrival) *tunnel {
	return &tunnel{front: h.front, at: at, sealed: h.listener.Sealed}
}

// faultAuthority returns what a rejected head names as far as it can be read:
// the zero value when that is nothing.
func faultAuthority(fault *wire.ProtocolError) (proxy.Authority, string) {
	if fault.Method == http.MethodConnect {
		a, _ := hostport.Parse(fault.Target, 0)
		return a, ""
	}
	a, scheme, malformed := proxy.ParseURL(fault.Target)
	if malformed != nil || !strings.ContainsAny(fault.Target[len(scheme)+len("://"):], "/?") {
		return proxy.Authority{}, "" // the target may have been cut off inside its host
	}
	return a, scheme
}

// authorize denies a request that may not pass this listener at all.
func (h *handler) authorize(r *http.Request) *proxy.Denial {
	f := h.front
	switch {
	case h.overflow != "":
		return denyOverflow(h.overflow)
	case f.plane.Draining().Err() != nil:
		return proxy.ReasonDraining.Deny("the session is ending")
	case !f.rate.Allow():
		return f.denyRate()
	case !h.listener.Sealed && !f.hasProxyToken(r):
		return proxy.ReasonToken.Deny("the proxy requires this session's token")
	}
	return nil
}

// connect responds to a CONNECT on the client's hijacked connection, and returns
// what serves its tunnel and closes the connection, nil if there is none. Policy is
// not applied here: its denials are sent inside the tunnel, where a client shows
// them.
func (h *handler) connect(r *http.Request, conn net.Conn) (tunnel func()) {
	if own, ok := conn.(*hijackedClient); ok {
		conn = own.Conn
	}
	defer func() {
		if tunnel == nil {
			_ = conn.Close()
		}
	}()
	a, err := hostport.Parse(r.RequestURI, 0)
	at := h.arrival(audit.SourceConnectTLS, a, "")
	d := h.authorize(r)
	if d == nil && err != nil {
		d = proxy.ReasonMalformed.Deny("CONNECT names no plain host:port")
	}
	if d == nil && !h.hostAgrees(r, a, conn.LocalAddr()) {
		d = proxy.ReasonAuthority.Deny("the Host of the CONNECT is neither its target nor this proxy")
	}
	if d != nil {
		writeResponse(conn, h.front.plane.Reject(at, r, d).Response(r))
		return nil
	}
	_ = conn.SetDeadline(time.Now().Add(h.front.cfg.Limits.Handshake))
	if h.ctx.Err() != nil {
		return nil // the deadline that ends the connection was just replaced
	}
	if _, err := io.WriteString(conn, "HTTP/1.1 200 Connection Established\r\n\r\n"); err != nil {
		return nil
	}
	if h.front.isTLSPassthrough(a) {
		return func() { h.front.passThroughTLS(conn, at, r) }
	}
	inner := h.tunnel(at)
	return func() { h.front.serveTunnel(conn, inner) }
}

// hostAgrees reports whether the Host of a CONNECT for a may stand beside it.
// The request target alone decides where it leads (RFC 9110 section 7.2); a Host
// that names a third party is still denied, as is every other disagreement about
// the authority. None is sent by HTTP/1.0 clients, Python's among them, and the
// proxy's own name by Node.
func (h *handler) hostAgrees(r *http.Request, a proxy.Authority, at net.Addr) bool {
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
func (h *handler) forward(r *http.Request) *http.Response {
	a, scheme, malformed := proxy.ParseURL(r.RequestURI)
	d := h.authorize(r)
	if d == nil && malformed != nil {
		d = malformed
	}
	if d == nil && scheme == "https" && !h.listener.Sealed {
		d = proxy.ReasonScheme.Deny("an https:// target came in clear")
	}
	at := h.arrival(audit.SourceForwardHTTP, a, scheme)
	if d != nil {
		return h.front.plane.Reject(at, r, d).Response(r)
	}
	inner := h.tunnel(at)
	inner.counted = true
	return inner.Answer(r)
}

// serveAPI serves a request that is not for a proxy: the session's API, and models.
func (h *handler) serveAPI(w http.ResponseWriter, r *http.Request) {
	own, ok := w.(*wire.ResponseWriter)
	if !ok {
		return
	}
	f := h.front
	allowed, client := f.rate.Allow(), f.clientOf(r, h.listener.Redirected, h.listener.Sealed)
	var d *proxy.Denial
	switch {
	case h.overflow != "":
		at := h.arrival(audit.SourceForwardHTTP, proxy.Authority{}, "http")
		_ = own.Respond(f.api.Deny(at, r, denyOverflow(h.overflow)))
		return
	case r.Host != "" && !h.listener.isNamed(r.Host, own.LocalAddr()):
		d = proxy.ReasonAuthority.Deny("the Host is no name of this session")
	case !allowed:
		d = f.denyRate()
	}
	if d != nil {
		_ = own.Respond(f.api.Deny(client.Arrival(), r, d))
		return
	}
	if m, target, ok := h.listener.model(r.RequestURI); ok {
		_ = own.Respond(h.serveModel(m, target, r))
		return
	}
	_ = own.Respond(f.api.Answer(client, r))
}

// clientOf returns what the API must know of the client of a request.
func (f *Front) clientOf(r *http.Request, redirected, sealed bool) api.Client {
	return api.Client{Redirected: redirected, Trusted: sealed || f.hasProxyToken(r)}
}
