// Package upstream is the only way out of the proxy: it resolves names, dials
// addresses, verifies TLS, and carries requests over HTTP/1.1 and HTTP/2.
//
// [New] makes a [Client], [Client.RoundTrip] sends a request and returns the
// head of its response, and [Client.Dial] connects to a host whose bytes are
// relayed as they are:
//
//	client, err := upstream.New(upstream.Options{})
//	if err != nil {
//		return err
//	}
//	defer client.Close()
//	res, err := client.RoundTrip(request, upstream.Route{})
//
// It refuses an address that is not public, a certificate chain that is weak or
// not for the host's name, and the head of a response that can be read in two
// ways. It sends a request a second time only where nothing of the first attempt
// can have arrived, or where [Route] allows it. Connections are shared by the
// requests of one credential and by no others.
//
// Every failure is an [*Error] with a [Kind]. What a kind means to a client
// (status, reason, what to do) is not decided here.
package upstream

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"net/url"
	"sync"
	"time"

	"github.com/ALRubinger/aileron/proxy/budget"
)

// Options is what a client is made of. The zero value resolves with the host's
// resolver, trusts the host's roots and dials directly, whatever HTTPS_PROXY
// says.
type Options struct {
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

	Descriptors Descriptors    // of connections; nil: they have no bound
	Memory      *budget.Budget // which pays for the larger windows of HTTP/2; nil: there are none
}

// Descriptors bounds the file descriptors of connections. Acquire waits for n of
// them, not for long, and returns [ErrOutOfDescriptors] or the context's error.
type Descriptors interface {
	Acquire(ctx context.Context, n int) error
	Release(n int)
}

// Client sends requests. All its methods are safe for concurrent use.
type Client struct {
	cfg      Options
	resolver *net.Resolver
	identity [32]byte // keys the pools' keys
	ends     errands

	wideSlots chan struct{} // streams with the larger window; nil: there are none

	mu      sync.Mutex
	pools   map[Key]*pool
	granted map[Key]bool   // the credentials of the grants in force
	speaks  map[string]int // the HTTP version that a host chose, by "host:port"
	closed  bool
}

// maxKnown bounds speaks.
const maxKnown = 4096

// New returns a client.
func New(cfg Options) (*Client, error) {
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
	u := &Client{cfg: cfg, resolver: net.DefaultResolver, pools: map[Key]*pool{}, speaks: map[string]int{}}
	_, _ = rand.Read(u.identity[:])
	if cfg.Memory != nil {
		u.reserveWide(cfg.Memory)
	}
	return u, nil
}

// overH2 reports whether r travels over HTTP/2 if its host agrees: its client
// speaks HTTP/2 and the host is not known to speak only HTTP/1.1, or the host
// speaks nothing else. A client of HTTP/1.1 gets HTTP/1.1 otherwise, which
// moves bodies faster.
func (u *Client) overH2(r *http.Request, clientH2 bool) bool {
	if r.URL.Scheme != "https" || r.Header["Upgrade"] != nil {
		return false
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	known := u.speaks[r.URL.Host]
	return known == onlyH2 || clientH2 && known != speaksH1
}

// What is known of a host's versions of HTTP.
const (
	speaksH1 = 1
	speaksH2 = 2
	onlyH2   = 3 // it ended a handshake that offered nothing else
)

func (u *Client) learn(host string, version int) {
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

// Route is how a request may travel.
type Route struct {
	Key        Key  // of the credential whose connections it may use; zero: it carries none
	HTTP2      bool // its client speaks HTTP/2
	Idempotent bool // it may be repeated
}

// RoundTrip sends r and returns the head of its response. The body of r is nil
// or a [*Body], and its URL has a host with a port.
//
// r is sent a second time, at most, when the connection that was tried turned
// out dead before a byte of the request was on it, or when it is idempotent and
// the connection died before a byte of the response; and only while no byte of
// its body is gone.
//
// The error is an [*Error].
func (u *Client) RoundTrip(r *http.Request, route Route) (*http.Response, error) {
	pool := u.pool(route.Key) // kept, whatever becomes of the grants
	sent, _ := r.Body.(*Body)
	for try, learned, wrote := 0, false, false; ; try++ {
		h2 := u.overH2(r, route.HTTP2)
		var attempt attempt
		res, err := u.send(r, pool, &attempt, h2)
		if err == nil {
			if res.StatusCode < 200 && res.StatusCode != http.StatusSwitchingProtocols || res.StatusCode > 599 {
				attempt.cancel()
				_ = res.Body.Close()
				return nil, &Error{Kind: InvalidStatus, Host: r.URL.Host, Sent: true}
			}
			return res, nil
		}
		if cause := sent.failure(); cause != nil && r.Context().Err() == nil {
			return nil, &Error{Kind: RequestBody, Host: r.URL.Host, Sent: wrote || attempt.reached(), Err: cause}
		}
		if !learned && u.learnFrom(r.URL.Host, err, h2) {
			learned = true
			try-- // nothing was sent
			continue
		}
		e := classify(r.Context(), r.URL.Host, err, &attempt)
		wrote = wrote || e.Sent
		e.Sent = wrote
		if attempt.stuck.Load() {
			e.Kind, e.Detail = Stalled, ""
		}
		dead := e.Kind.mayRepeat() && (attempt.unwritten() || route.Idempotent && !attempt.answered.Load())
		if try > 0 || !dead || sent.Sent() > 0 {
			return nil, e
		}
	}
}

// send makes one attempt.
func (u *Client) send(r *http.Request, p *pool, a *attempt, h2 bool) (*http.Response, error) {
	ctx, cancel := context.WithCancel(r.Context()) // of a response, it ends with the exchange
	a.cancel, a.h2 = cancel, h2
	if h2 {
		ctx = httptrace.WithClientTrace(ctx, a.trace())
	}
	out := r.WithContext(ctx)
	if sent, ok := r.Body.(*Body); ok {
		out.Body = sent.attempt(u.cfg.ResponseHeader, func() {
			if !a.heard.Load() { // an upstream that answers may take its time with the rest
				a.stuck.Store(true)
				cancel()
			}
		})
	}
	var res *http.Response
	var err error
	if h2 {
		res, err = p.roundTripH2(out, a)
	} else {
		res, err = p.lane.roundTrip(out, a)
	}
	if err != nil {
		cancel()
		if out.Body != nil {
			_ = out.Body.Close()
		}
		return nil, err
	}
	a.heard.Store(true)
	if h2 {
		u.learn(r.URL.Host, speaksH2)
	}
	return res, nil
}

// learnFrom reports whether a failed attempt, of which nothing was sent,
// showed that the host wants the other version of HTTP.
func (u *Client) learnFrom(host string, err error, h2 bool) bool {
	switch {
	case errors.Is(err, errSpeaksH1):
		u.learn(host, speaksH1)
	case !h2 && wantsAnotherProtocol(err):
		u.learn(host, onlyH2)
	default:
		return false
	}
	return true
}

// wantsAnotherProtocol reports that the host ended the handshake because it
// speaks none of the protocols that were offered: RFC 7301 section 3.2.
func wantsAnotherProtocol(err error) bool {
	var alert *net.OpError // crypto/tls gives a peer's alert no type of its own
	return errors.As(err, &alert) && alert.Op == "remote error" && alert.Err.Error() == tls.AlertError(120).Error()
}
