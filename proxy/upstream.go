package proxy

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"syscall"
	"time"

	"github.com/ALRubinger/aileron/proxy/address"
)

// Upstream says how the plane reaches the outside. The zero value resolves
// with the host's resolver, trusts the host's roots and dials directly,
// whatever HTTPS_PROXY says.
type Upstream struct {
	// Resolve pins "host:port" to an address, which may then be private: the
	// owner of the session says so. curl's --resolve.
	Resolve map[string]netip.AddrPort
	// Roots are the trusted roots; nil: the host's. The session's own CA is
	// never among them.
	Roots *x509.CertPool
	// Proxy is an http:// proxy through which upstreams are reached, nil: none.
	Proxy *url.URL

	Dial           time.Duration // name, connection and TLS, each; default 10 s
	ResponseHeader time.Duration // from the request's end to the answer's head; default 60 s
	Idle           time.Duration // of a pooled connection; default 90 s
}

// upstream is the only way out. It verifies TLS for the authority's name,
// dials only addresses that it has checked, and sends nothing twice.
type upstream struct {
	cfg       Upstream
	transport *http.Transport
	resolver  *net.Resolver
}

func newUpstream(cfg Upstream) (*upstream, error) {
	if cfg.Dial == 0 {
		cfg.Dial = 10 * time.Second
	}
	if cfg.ResponseHeader == 0 {
		cfg.ResponseHeader = 60 * time.Second
	}
	if cfg.Idle == 0 {
		cfg.Idle = 90 * time.Second
	}
	if cfg.Proxy != nil && cfg.Proxy.Scheme != "http" {
		return nil, fmt.Errorf("use the upstream proxy: its scheme is %q, not http", cfg.Proxy.Scheme)
	}
	u := &upstream{cfg: cfg, resolver: net.DefaultResolver}
	u.transport = &http.Transport{
		Proxy:       nil, // never from the environment
		DialContext: u.dial,
		TLSClientConfig: &tls.Config{
			RootCAs:            cfg.Roots,
			MinVersion:         tls.VersionTLS12,
			ClientSessionCache: tls.NewLRUClientSessionCache(256),
		},
		TLSHandshakeTimeout:    cfg.Dial,
		ResponseHeaderTimeout:  cfg.ResponseHeader,
		IdleConnTimeout:        cfg.Idle,
		MaxIdleConns:           512,
		MaxIdleConnsPerHost:    128,
		MaxResponseHeaderBytes: 256 << 10,
		WriteBufferSize:        16 << 10,
		ReadBufferSize:         16 << 10,
		DisableCompression:     true, // the bytes are the upstream's own
		TLSNextProto:           map[string]func(string, *tls.Conn) http.RoundTripper{},
	}
	return u, nil
}

func (u *upstream) close() { u.transport.CloseIdleConnections() }

// roundTrip sends r once and gives the answer's head. Its denials hold no
// text of any error from below: those name URLs, addresses and headers.
func (u *upstream) roundTrip(r *http.Request) (*http.Response, *Denial) {
	res, err := u.transport.RoundTrip(r)
	if err != nil {
		return nil, upstreamDenial(r, err)
	}
	return res, nil
}

func upstreamDenial(r *http.Request, err error) *Denial {
	var (
		refused  *addressError
		notFound *net.DNSError
		dial     *net.OpError
		unknown  *tls.CertificateVerificationError
		alert    tls.AlertError
		record   tls.RecordHeaderError
		timeout  net.Error
	)
	host := r.Host
	switch {
	case errors.As(err, &refused):
		d := deny(reasonAddress, "%s resolves to no address that may be reached (%s)", host, refused.why)
		d.Requested = "network:" + r.URL.Host
		return d
	case r.Context().Err() != nil:
		return deny(reasonClientGone, "the client went away before %s answered", host)
	case errors.As(err, &notFound) && !notFound.IsTimeout:
		return deny(reasonName, "the name %s cannot be resolved", host)
	case errors.As(err, &unknown), errors.As(err, &alert), errors.As(err, &record):
		return deny(reasonTLSUpstream, "TLS with %s could not be set up: its certificate is not trusted for that name, or it speaks no TLS 1.2", host)
	case errors.As(err, &timeout) && timeout.Timeout():
		return deny(reasonTimeout, "%s did not answer in time", host)
	case errors.As(err, &dial) && dial.Op == "dial":
		return deny(reasonDial, "no connection to %s could be made", host)
	}
	return deny(reasonUpstream, "the connection to %s broke before it answered", host)
}

// addressError is a name that leads only where nobody may go. why is the
// address's class, never the address.
type addressError struct{ why string }

func (e *addressError) Error() string { return "dial upstream: " + e.why + " address" }

// maxAddresses is how many addresses of one name are looked at.
const maxAddresses = 16

// dial connects to "host:port". A pinned name goes where the owner said. Any
// other is resolved once, and the address that was checked is the address
// that is dialled: again at connect time, below the resolver's reach.
func (u *upstream) dial(ctx context.Context, network, hostport string) (net.Conn, error) {
	if u.cfg.Proxy != nil {
		return u.dialThroughProxy(ctx, hostport)
	}
	ctx, cancel := context.WithTimeout(ctx, u.cfg.Dial)
	defer cancel()
	if pinned, ok := u.cfg.Resolve[hostport]; ok {
		return (&net.Dialer{}).DialContext(ctx, "tcp", pinned.String())
	}
	host, port, err := net.SplitHostPort(hostport)
	if err != nil {
		return nil, fmt.Errorf("dial upstream: %w", err)
	}
	addrs, err := u.addresses(ctx, host)
	if err != nil {
		return nil, err
	}
	checked := &net.Dialer{ControlContext: floor}
	var last error
	for _, addr := range addrs {
		conn, err := checked.DialContext(ctx, "tcp", net.JoinHostPort(addr.String(), port))
		if err == nil {
			return conn, nil
		}
		if last = err; ctx.Err() != nil {
			break
		}
	}
	return nil, last
}

// addresses are the public addresses of a name, or an addressError.
func (u *upstream) addresses(ctx context.Context, host string) ([]netip.Addr, error) {
	var found []netip.Addr
	if addr, err := netip.ParseAddr(host); err == nil {
		found = []netip.Addr{addr}
	} else {
		// The trailing dot keeps the host's search domains out.
		found, err = u.resolver.LookupNetIP(ctx, "ip", strings.TrimSuffix(host, ".")+".")
		if err != nil {
			return nil, fmt.Errorf("resolve upstream: %w", err)
		}
	}
	var public []netip.Addr
	why := "no"
	for _, addr := range found[:min(len(found), maxAddresses)] {
		addr = addr.Unmap()
		if class := address.Classify(addr); class.Public {
			public = append(public, addr)
		} else {
			why = class.Reason
		}
	}
	if len(public) == 0 {
		return nil, &addressError{why: why}
	}
	return public, nil
}

// floor is the last check before connect(2): the address in the kernel's
// hands is public, whatever happened above.
func floor(_ context.Context, _, addr string, _ syscall.RawConn) error {
	ap, err := netip.ParseAddrPort(addr)
	if err != nil {
		return &addressError{why: "unreadable"}
	}
	if class := address.Classify(ap.Addr()); !class.Public {
		return &addressError{why: class.Reason}
	}
	return nil
}

// dialThroughProxy asks the owner's own proxy for a tunnel (RFC 9110 section
// 9.3.6). It resolves the name; the address floor is then the proxy's.
func (u *upstream) dialThroughProxy(ctx context.Context, hostport string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, u.cfg.Dial)
	defer cancel()
	at := u.cfg.Proxy.Host
	if u.cfg.Proxy.Port() == "" {
		at = net.JoinHostPort(u.cfg.Proxy.Hostname(), "3128")
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", at)
	if err != nil {
		return nil, fmt.Errorf("dial the upstream proxy: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	head := "CONNECT " + hostport + " HTTP/1.1\r\nHost: " + hostport + "\r\n"
	if user := u.cfg.Proxy.User; user != nil {
		password, _ := user.Password()
		head += "Proxy-Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte(user.Username()+":"+password)) + "\r\n"
	}
	if _, err := conn.Write([]byte(head + "\r\n")); err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("ask the upstream proxy: %w", err)
	}
	br := bufio.NewReader(conn)
	res, err := http.ReadResponse(br, &http.Request{Method: http.MethodConnect})
	if err != nil || res.StatusCode != http.StatusOK || br.Buffered() > 0 {
		_ = conn.Close()
		return nil, errors.New("ask the upstream proxy: it refused the tunnel")
	}
	if !stop() {
		_ = conn.Close()
		return nil, ctx.Err()
	}
	return conn, nil
}
