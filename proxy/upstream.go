package proxy

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"
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
	cfg      Upstream
	resolver *net.Resolver

	mu     sync.Mutex
	pools  map[string]*pool // by the binding whose credential they carry, "" for none
	speaks map[string]int   // the HTTP version that a host chose, by "host:port"
}

// pool is the connections that requests with one credential share. Those of
// another credential never travel on them: there are servers that take a
// connection for a person.
type pool struct {
	// h1 offers HTTP/1.1 only, either offers HTTP/2 too. A client that speaks
	// HTTP/1.1 gets the former, which moves bodies faster.
	h1, either *http.Transport
	lane       *lane // like h1, for requests without a body
}

// maxKnown bounds speaks.
const maxKnown = 4096

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
	return &upstream{cfg: cfg, resolver: net.DefaultResolver, pools: map[string]*pool{}, speaks: map[string]int{}}, nil
}

// streamWindow is how much of an answer over HTTP/2 may come before its client
// takes it. net/http's default, 4 MiB for each stream, lets a client that reads
// nothing fill the memory. There is no window for the whole connection: streams
// that stand still would close it for the others.
const streamWindow = 128 << 10

func (u *upstream) newPool() *pool {
	tickets := tls.NewLRUClientSessionCache(256)
	transport := func(protocols *http.Protocols, alpn ...string) *http.Transport {
		return &http.Transport{
			Proxy:                  nil, // never from the environment
			DialContext:            u.dial,
			TLSClientConfig:        &tls.Config{RootCAs: u.cfg.Roots, MinVersion: tls.VersionTLS12, ClientSessionCache: tickets, NextProtos: alpn},
			TLSHandshakeTimeout:    u.cfg.Dial,
			ResponseHeaderTimeout:  u.cfg.ResponseHeader,
			IdleConnTimeout:        u.cfg.Idle,
			MaxIdleConns:           512,
			MaxIdleConnsPerHost:    128,
			MaxResponseHeaderBytes: 256 << 10,
			WriteBufferSize:        16 << 10,
			ReadBufferSize:         16 << 10,
			DisableCompression:     true, // the bytes are the upstream's own
			Protocols:              protocols,
			// A connection that died without a word (sleep, another network) is
			// noticed, and not used again.
			HTTP2: &http.HTTP2Config{
				SendPingTimeout: 15 * time.Second, PingTimeout: 15 * time.Second, MaxReceiveBufferPerStream: streamWindow,
			},
		}
	}
	var one, both http.Protocols
	one.SetHTTP1(true)
	both.SetHTTP1(true)
	both.SetHTTP2(true)
	h1 := transport(&one, "http/1.1")
	return &pool{h1: h1, either: transport(&both), lane: &lane{dial: u.dial, tls: h1.TLSClientConfig, cfg: u.cfg, idle: map[string][]*laneConn{}}}
}

func (p *pool) close() {
	p.h1.CloseIdleConnections()
	p.either.CloseIdleConnections()
	p.lane.close()
}

func (u *upstream) close() { u.keep(nil) }

// keep ends the idle connections of all bindings that are not among these:
// they were revoked, or the session ends.
func (u *upstream) keep(bindings map[string]bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for binding, p := range u.pools {
		if !bindings[binding] {
			p.close()
			delete(u.pools, binding)
		}
	}
}

// transport is the one for r: of its credential's pool, and of the protocol
// that its client speaks, unless the host is known to speak only HTTP/1.1. For
// that there is the lane, too.
func (u *upstream) transport(r *http.Request, binding string, h2 bool) (*http.Transport, *lane) {
	u.mu.Lock()
	defer u.mu.Unlock()
	p := u.pools[binding]
	if p == nil {
		p = u.newPool()
		u.pools[binding] = p
	}
	known := u.speaks[r.URL.Host]
	if r.URL.Scheme == "https" && (known == onlyH2 || h2 && known != speaksH1) {
		return p.either, nil
	}
	return p.h1, p.lane
}

// What is known of a host's versions of HTTP.
const (
	speaksH1 = 1
	speaksH2 = 2
	onlyH2   = 3 // it ended a handshake that offered nothing else
)

func (u *upstream) learn(host string, version int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.speaks) >= maxKnown {
		clear(u.speaks)
	}
	if version == speaksH2 && u.speaks[host] == onlyH2 {
		return
	}
	u.speaks[host] = version
}

// journey is how a request may travel.
type journey struct {
	binding    string // whose credential it carries
	h2         bool   // its client speaks HTTP/2
	idempotent bool   // its operation may be repeated
}

// roundTrip sends r and gives the answer's head. It is sent a second time, at
// most, when the connection that was tried turned out dead before a byte of
// the request was on it, or when it is idempotent and the connection died
// before a byte of the answer; and only while no byte of its body is gone.
//
// Its denials hold no text of any error from below: those name URLs,
// addresses and headers.
func (u *upstream) roundTrip(r *http.Request, how journey) (*http.Response, *Denial) {
	bodyless := r.Body == nil
	for try := 0; ; try++ {
		t, lane := u.transport(r, how.binding, how.h2)
		var attempt attempt
		ctx, cancel := context.WithCancel(r.Context()) // of an answer, it ends with the exchange
		attempt.repeated = cancel
		out := r.WithContext(httptrace.WithClientTrace(ctx, attempt.trace()))
		sent, _ := r.Body.(*countingBody)
		if sent != nil {
			out.Body = sent.attempt(u.cfg.ResponseHeader, func() {
				if !attempt.heard.Load() { // an upstream that answers may take its time with the rest
					attempt.stuck.Store(true)
					cancel()
				}
			})
		}
		var res *http.Response
		var err error
		if bodyless && lane != nil && r.Header["Upgrade"] == nil {
			res, err = lane.roundTrip(out, &attempt)
		} else {
			if bodyless && !t.Protocols.HTTP2() {
				neverReplayed(out)
			}
			res, err = t.RoundTrip(out)
		}
		if err == nil {
			attempt.heard.Store(true)
			if res.StatusCode < 200 && res.StatusCode != http.StatusSwitchingProtocols || res.StatusCode > 599 {
				cancel()
				_ = res.Body.Close()
				return nil, deny(reasonUpstream, "%s answered with a status that there is not", r.Host)
			}
			if r.URL.Scheme == "https" && t.Protocols.HTTP2() {
				u.learn(r.URL.Host, res.ProtoMajor)
			}
			return res, nil
		}
		cancel()
		if sent != nil {
			_ = out.Body.Close()
		}
		if d := sent.denial(); d != nil && r.Context().Err() == nil {
			return nil, d
		}
		if try == 0 && t.Protocols.HTTP1() && !t.Protocols.HTTP2() && wantsAnotherProtocol(err) {
			u.learn(r.URL.Host, onlyH2)
			continue
		}
		d := upstreamDenial(r, err)
		if attempt.stuck.Load() {
			d = deny(reasonTimeout, "%s does not take the request's body", r.Host)
		}
		dead := d.Reason == reasonUpstream && (attempt.unwritten() || how.idempotent && !attempt.answered.Load())
		if try > 0 || !dead || sent != nil && sent.n.Load() > 0 {
			return nil, d
		}
	}
}

// neverReplayed keeps net/http's transport from repeating a request by
// itself: it takes one without a body, or with the field Idempotency-Key in
// its canonical spelling, for repeatable. The empty body is of no length, so
// that no framing is sent for it; a method that should have one says 0.
func neverReplayed(r *http.Request) {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace:
		r.Body, r.ContentLength = emptyBody{}, -1
		r.TransferEncoding = []string{"identity"}
	}
	h := r.Header
	for _, name := range []string{"Idempotency-Key", "X-Idempotency-Key"} {
		if v, ok := h[name]; ok {
			delete(h, name)
			h[strings.ToLower(name)] = v
		}
	}
}

type emptyBody struct{}

func (emptyBody) Read([]byte) (int, error) { return 0, io.EOF }
func (emptyBody) Close() error             { return nil }

// WriteTo spares the transport a buffer of 32 KiB to copy nothing with.
func (emptyBody) WriteTo(io.Writer) (int64, error) { return 0, nil }

// attempt watches one attempt's connection. net/http's transports make some
// attempts of their own, over HTTP/2 without a bound: for a GET, and for
// whatever has no body, when the host ends the connection or refuses the
// stream. The second connection ends ours, before a byte is on it.
type attempt struct {
	conn     *countedConn
	before   int64
	h2       bool
	repeated context.CancelFunc
	wrote    atomic.Bool // a field of the request left, over HTTP/2
	answered atomic.Bool // a byte of an answer came
	stuck    atomic.Bool // the upstream does not take the body
	heard    atomic.Bool // the head of the answer is there
}

func (a *attempt) trace() *httptrace.ClientTrace {
	return &httptrace.ClientTrace{
		GotFirstResponseByte: func() { a.answered.Store(true) },
		WroteHeaderField:     func(string, []string) { a.wrote.Store(true) },
		GotConn: func(info httptrace.GotConnInfo) {
			if a.conn != nil {
				a.repeated()
				return
			}
			conn := info.Conn
			if secure, ok := conn.(*tls.Conn); ok {
				a.h2 = secure.ConnectionState().NegotiatedProtocol == "h2"
				conn = secure.NetConn()
			}
			if counted, ok := conn.(*countedConn); ok {
				a.conn, a.before = counted, counted.written.Load()
			}
		},
	}
}

// unwritten reports that the attempt got a connection, and wrote nothing.
func (a *attempt) unwritten() bool {
	if a.conn == nil {
		return false
	}
	if a.h2 { // other streams write on it too
		return !a.wrote.Load()
	}
	return a.conn.written.Load() == a.before
}

// wantsAnotherProtocol reports that the host ended the handshake because it
// speaks none of the protocols that were offered: RFC 7301 section 3.2.
func wantsAnotherProtocol(err error) bool {
	var alert *net.OpError // crypto/tls gives a peer's alert no type of its own
	return errors.As(err, &alert) && alert.Op == "remote error" && alert.Err.Error() == tls.AlertError(120).Error()
}

func upstreamDenial(r *http.Request, err error) *Denial {
	var (
		refused  *addressError
		notFound *net.DNSError
		broken   *net.OpError
		unknown  *tls.CertificateVerificationError
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
	case errors.As(err, &unknown), errors.As(err, &record), errors.As(err, &broken) && broken.Op == "remote error":
		return deny(reasonTLSUpstream, "TLS with %s could not be set up: its certificate is not trusted for that name, or it speaks no TLS 1.2", host)
	case errors.As(err, &timeout) && timeout.Timeout():
		return deny(reasonTimeout, "%s did not answer in time", host)
	case errors.As(err, &broken) && broken.Op == "dial":
		return deny(reasonDial, "no connection to %s could be made", host)
	case malformedFraming(err):
		return deny(reasonFieldName, "%s sent a field whose name can be taken for one of framing or coding", host)
	}
	return deny(reasonUpstream, "the connection to %s broke before it answered", host)
}
