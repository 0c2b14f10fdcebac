package proxy

import (
	"context"
	"crypto/subtle"
	"encoding/base64"
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

// Door describes who can reach a listener and what may be trusted because of
// that.
type Door struct {
	// Sealed: only this session's own box can reach the listener, so that no
	// token is asked for, and absolute-form https:// requests are taken
	// (BusyBox wget sends them).
	Sealed bool
	// Redirected: the gateway opens every connection with a CONNECT of its
	// own, for a client that ignored the proxy. A bare address may then be
	// named by the client's SNI.
	Redirected bool
	// Names are names of the listener, as "host:port", beside its own address:
	// those under which a gateway or an engine makes it reachable.
	Names []string
}

// recovered keeps a bug in one exchange from ending the session.
func (p *Plane) recovered(where string) {
	if recover() != nil {
		panics.Log(p.cfg.Log, where)
	}
}

// front is the outer side of a door: the proxy protocol itself. goproxy
// dispatches; it never dials, verifies or signs anything for us.
type front struct {
	p    *Plane
	door Door
	ctx  context.Context //nolint:containedctx // the life of the door, which every tunnel on it shares
	over Reason          //  the reason why every request is refused; "": it is not
	gp   *goproxy.ProxyHttpServer
	full map[Reason]*front // of connections that are over a limit, by the reason
}

var errNeverDial = errors.New("dial: goproxy must not dial")

func (p *Plane) front(ctx context.Context, door Door) *front {
	f := &front{p: p, door: door, ctx: ctx}
	gp := goproxy.NewProxyHttpServer()
	gp.Logger = log.New(io.Discard, "", 0)
	// goproxy's own transport does not verify, and its dialer reads
	// HTTPS_PROXY: neither may ever be reached.
	gp.Tr = &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return nil, errNeverDial }}
	gp.ConnectDial = func(string, string) (net.Conn, error) { return nil, errNeverDial }
	gp.ConnectDialWithReq = func(*http.Request, string, string) (net.Conn, error) { return nil, errNeverDial }
	gp.KeepAcceptEncoding = true
	// Without a CONNECT handler goproxy tunnels unmediated: this one is total.
	gp.OnRequest().HandleConnectFunc(func(string, *goproxy.ProxyCtx) (*goproxy.ConnectAction, string) {
		return &goproxy.ConnectAction{Action: goproxy.ConnectHijack, Hijack: func(r *http.Request, c net.Conn, _ *goproxy.ProxyCtx) {
			f.connect(r, c)
		}}, ""
	})
	// A nil response would make goproxy dial. ServeHTTP leaves it no such request.
	gp.OnRequest().DoFunc(func(r *http.Request, _ *goproxy.ProxyCtx) (*http.Request, *http.Response) {
		return r, deny(reasonPanic, "the request was not answered on the wire").Response(r)
	})
	gp.NonproxyHandler = http.HandlerFunc(f.origin)
	f.gp = gp
	return f
}

// refuseOver makes the fronts of the connections that are over a limit.
func (f *front) refuseOver() {
	f.full = map[Reason]*front{}
	for _, reason := range []Reason{reasonConcurrency, reasonDescriptors} {
		f.full[reason] = f.p.front(f.ctx, f.door)
		f.full[reason].over = reason
	}
}

// denyOver is the denial of a connection that is over a limit.
func denyOver(reason Reason) *Denial {
	if reason == reasonDescriptors {
		return deny(reason, "the process has too many files and connections open")
	}
	return deny(reason, "the session has too many connections open")
}

// ServeHTTP implements wire.Handler. A request in absolute form is answered on
// the wire itself: goproxy would drop the error of a response that breaks off,
// and half of it would end as if it were all.
func (f *front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	own, ok := w.(*wire.ResponseWriter)
	if ok && r.Method != http.MethodConnect && r.URL.IsAbs() {
		_ = own.Respond(f.forward(r))
		return
	}
	f.gp.ServeHTTP(w, r)
}

// Refuse implements wire.Handler: a head that the wire did not take is
// written down and answered.
func (f *front) Refuse(fault *wire.Fault) *http.Response {
	a, scheme := faultAuthority(fault)
	over := &inside{p: f.p, a: a, scheme: scheme, source: f.source(fault.Method == http.MethodConnect), door: f.door}
	return over.Refuse(fault)
}

// faultAuthority is what a refused head names as far as it can be read: the
// zero value when that is nothing.
func faultAuthority(fault *wire.Fault) (Authority, string) {
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

func (f *front) source(connect bool) audit.Source {
	if connect {
		return audit.SourceConnectTLS
	}
	return audit.SourceForwardHTTP
}

// gate refuses what may not pass this door at all; nil lets it in.
func (f *front) gate(r *http.Request) *Denial {
	switch {
	case f.over != "":
		return denyOver(f.over)
	case f.p.draining.Err() != nil:
		return deny(reasonDraining, "the session is ending")
	case !f.p.rate.Allow():
		return f.p.tooFast()
	case !f.door.Sealed && !f.p.proxyToken(r):
		return deny(reasonToken, "the proxy wants this session's token")
	}
	return nil
}

// connect serves a CONNECT on the client's hijacked connection. Policy has no
// say here: its refusals are said inside the tunnel, where a client shows them.
func (f *front) connect(r *http.Request, client net.Conn) {
	defer client.Close()
	a, err := hostport.Parse(r.RequestURI, 0)
	d := f.gate(r)
	if d == nil && err != nil {
		d = deny(reasonMalformed, "CONNECT names no plain host:port")
	}
	if d == nil && !f.agrees(r, a, client.LocalAddr()) {
		d = deny(reasonAuthority, "the Host of the CONNECT is neither its target nor this proxy")
	}
	if d != nil {
		x := f.p.newExchange(f.door, audit.SourceConnectTLS, a, "", r)
		x.row.Path = ""
		writeResponse(client, x.reject(d).Response(r))
		return
	}
	_ = client.SetDeadline(time.Now().Add(f.p.cfg.Limits.Handshake))
	if _, err := io.WriteString(client, "HTTP/1.1 200 Connection Established\r\n\r\n"); err != nil {
		return
	}
	if f.p.bypasses(a) {
		f.p.bypass(f.ctx, client, a, f.door, r)
		return
	}
	f.p.tunnel(f.ctx, client, a, f.door)
}

// agrees reports whether the Host of a CONNECT for a may stand beside it. The
// request target alone decides where it leads (RFC 9110 section 7.2); a Host
// that names a third party is still refused, as is every other disagreement
// about the authority. None is sent by HTTP/1.0 clients, Python's among them,
// and the proxy's own name by Node.
func (f *front) agrees(r *http.Request, a Authority, at net.Addr) bool {
	if r.Host == "" || f.door.named(r.Host, at) {
		return true
	}
	host, err := hostport.Parse(r.Host, a.Port)
	return err == nil && host == a
}

// writeResponse writes a refusal outside the wire, and ends the connection.
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

// forward answers an absolute-form request (RFC 9112 section 3.2.2).
func (f *front) forward(r *http.Request) *http.Response {
	a, scheme, malformed := ParseURL(r.RequestURI)
	refuse := func(d *Denial) *http.Response {
		return f.p.newExchange(f.door, audit.SourceForwardHTTP, a, scheme, r).reject(d).Response(r)
	}
	if d := f.gate(r); d != nil {
		return refuse(d)
	}
	switch {
	case malformed != nil:
		return refuse(malformed)
	case scheme == "https" && !f.door.Sealed:
		return refuse(deny(reasonScheme, "an https:// target came in clear"))
	}
	over := &inside{p: f.p, ctx: f.ctx, a: a, scheme: scheme, source: audit.SourceForwardHTTP, door: f.door}
	return over.Answer(r)
}

// origin answers a request that is not for a proxy: the session's API.
func (f *front) origin(w http.ResponseWriter, r *http.Request) {
	own, ok := w.(*wire.ResponseWriter)
	if !ok {
		return
	}
	var res *http.Response
	switch {
	case f.over != "":
		res = f.p.newExchange(f.door, audit.SourceForwardHTTP, Authority{}, "http", r).
			reject(denyOver(f.over)).Response(r)
	case r.Host != "" && !f.door.named(r.Host, own.LocalAddr()):
		res = f.p.refuseAPI(f.door, r, deny(reasonAuthority, "the Host is no name of this session"))
	default:
		res = f.p.api(f.door, r)
	}
	_ = own.Respond(res)
}

// proxyToken reports a request with this session's token in
// Proxy-Authorization: Basic with any user, or Bearer.
func (p *Plane) proxyToken(r *http.Request) bool {
	fields := r.Header["Proxy-Authorization"]
	if len(fields) != 1 {
		return false
	}
	scheme, value, _ := strings.Cut(fields[0], " ")
	value = strings.TrimSpace(value)
	switch strings.ToLower(scheme) {
	case "bearer":
		return p.isToken(value)
	case "basic":
		raw, err := base64.StdEncoding.DecodeString(value)
		if err != nil {
			return false
		}
		_, password, found := strings.Cut(string(raw), ":")
		return found && p.isToken(password)
	}
	return false
}

func (p *Plane) isToken(s string) bool {
	return subtle.ConstantTimeCompare([]byte(s), []byte(p.cfg.Token)) == 1
}
