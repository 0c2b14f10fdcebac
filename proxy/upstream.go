package proxy

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
	identity [32]byte // keys the pools' keys
	ends     errands
	files    *descriptors

	wideSlots chan struct{} // streams with the larger window; nil: there are none

	mu      sync.Mutex
	pools   map[poolKey]*pool
	granted map[poolKey]bool // the credentials of the grants in force
	speaks  map[string]int   // the HTTP version that a host chose, by "host:port"
	closed  bool
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
	u := &upstream{cfg: cfg, resolver: net.DefaultResolver, files: newDescriptors(descriptorLimit()), pools: map[poolKey]*pool{}, speaks: map[string]int{}}
	u.files.giveUp = u.giveUpIdle
	_, _ = rand.Read(u.identity[:])
	return u, nil
}

// overH2 reports whether r travels over HTTP/2 if its host agrees: its client
// speaks HTTP/2 and the host is not known to speak only HTTP/1.1, or the host
// speaks nothing else. A client of HTTP/1.1 gets HTTP/1.1 otherwise, which
// moves bodies faster.
func (u *upstream) overH2(r *http.Request, clientH2 bool) bool {
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
	credential poolKey // whose connections it may use
	h2         bool    // its client speaks HTTP/2
	idempotent bool    // its operation may be repeated
}

// roundTrip sends r and returns the head of its response. It is sent a second
// time, at most, when the connection that was tried turned out dead before a
// byte of the request was on it, or when it is idempotent and the connection
// died before a byte of the response; and only while no byte of its body is
// gone.
//
// Its denials hold no text of any error from below: those name URLs,
// addresses and headers.
func (u *upstream) roundTrip(r *http.Request, how journey) (*http.Response, *Denial) {
	pool := u.pool(how.credential) // kept, whatever becomes of the grants
	for try, learned, wrote := 0, false, false; ; try++ {
		h2 := u.overH2(r, how.h2)
		var attempt attempt
		res, err := u.send(r, pool, &attempt, h2)
		if err == nil {
			if res.StatusCode < 200 && res.StatusCode != http.StatusSwitchingProtocols || res.StatusCode > 599 {
				attempt.cancel()
				_ = res.Body.Close()
				return nil, deny(reasonUpstream, "%s answered with a status that there is not", r.Host)
			}
			return res, nil
		}
		sent, _ := r.Body.(*countingBody)
		if d := sent.denial(); d != nil && r.Context().Err() == nil {
			return nil, d
		}
		if !learned && u.learnFrom(r.URL.Host, err, h2) {
			learned = true
			try-- // nothing was sent
			continue
		}
		d := upstreamDenial(r, err, &attempt)
		wrote = wrote || attempt.reached()
		if d.Reason == reasonClientGone && wrote {
			d.Reason = reasonUndelivered // what was sent cannot be taken back
		}
		if attempt.stuck.Load() {
			d = deny(reasonTimeout, "%s does not take the request's body", r.Host)
		}
		dead := repeatable(d.Reason) && (attempt.unwritten() || how.idempotent && !attempt.answered.Load())
		if try > 0 || !dead || sent != nil && sent.n.Load() > 0 {
			return nil, d
		}
	}
}

// send makes one attempt.
func (u *upstream) send(r *http.Request, p *pool, a *attempt, h2 bool) (*http.Response, error) {
	ctx, cancel := context.WithCancel(r.Context()) // of a response, it ends with the exchange
	a.cancel, a.h2 = cancel, h2
	if h2 {
		ctx = httptrace.WithClientTrace(ctx, a.trace())
	}
	out := r.WithContext(ctx)
	if sent, ok := r.Body.(*countingBody); ok {
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
func (u *upstream) learnFrom(host string, err error, h2 bool) bool {
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

// upstreamDenial is the denial of a request that got no response. a is the attempt
// to send it, nil when it was none of HTTP.
func upstreamDenial(r *http.Request, err error, a *attempt) *Denial {
	var (
		refused  *addressError
		notFound *net.DNSError
		broken   *net.OpError
		unsafe   *handshakeError
		head     *headError
		timeout  net.Error
		record   tls.RecordHeaderError
	)
	host := r.Host
	switch {
	case errors.As(err, &refused):
		d := deny(reasonAddress, "%s resolves to no address that may be reached (%s)", host, refused.why)
		d.Requested = "network:" + r.URL.Host
		return d
	case noDescriptor(err):
		return deny(reasonDescriptors, "the process has no file descriptor left for a connection to %s", host)
	case r.Context().Err() != nil:
		return deny(reasonClientGone, "the client went away before %s answered", host)
	case errors.As(err, &notFound) && !notFound.IsTimeout:
		return deny(reasonName, "the name %s cannot be resolved", host)
	case errors.As(err, &record):
		return deny(reasonTLSUpstream, "%s does not speak TLS", host)
	case errors.As(err, &unsafe), errors.As(err, &broken) && broken.Op == "remote error":
		return deny(reasonTLSUpstream, "TLS with %s could not be set up: its certificates are not trusted for that name or too weak, "+
			"or it speaks no TLS 1.2", host)
	case errors.As(err, &head) && head.odd, malformedFraming(err):
		return deny(reasonFieldName, "%s sent a field whose name can be taken for one of framing or coding", host)
	case errors.As(err, &timeout) && timeout.Timeout() && a != nil && a.answered.Load():
		return deny(reasonUpstreamSlow, "the head of the response of %s did not end in time", host)
	case errors.As(err, &timeout) && timeout.Timeout():
		return deny(reasonTimeout, "%s did not answer in time", host)
	case errors.As(err, &broken) && broken.Op == "dial":
		return deny(reasonDial, "no connection to %s could be made", host)
	}
	return denyBroken(host, err, a)
}
