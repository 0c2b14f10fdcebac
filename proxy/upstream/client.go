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
//	key := client.Key("bearer", token)
//	client.Keep(key)
//	res, err := client.RoundTrip(request, upstream.Route{Key: key})
//
// It rejects an address that is not public, a certificate chain that is weak or
// not for the host's name, and the head of a response that can be read in two
// ways. It sends a request a second time only where nothing of the first attempt
// can have arrived, or where [Route] allows it. Connections and TLS sessions are
// shared by the requests of one credential and by no others.
//
// Every failure of a request or a connection is an [*Error] with a [Kind]. What a
// kind means to a client (status, reason, what to do next) is not decided here.
package upstream

import (
	"context"
	"crypto/rand"
	"crypto/x509"
	"net"
	"net/netip"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ALRubinger/aileron/proxy/budget"
)

// Options configures a [Client]. The zero value resolves with the host's
// resolver, trusts the host's roots and dials directly. HTTPS_PROXY has no effect.
type Options struct {
	// Resolve pins "host:port" to an address, as curl's --resolve does. A pinned
	// address may be private: the owner of the session has chosen it.
	Resolve map[string]netip.AddrPort
	// Roots are the trusted roots; nil: the host's. The session's own CA is
	// never among them.
	Roots *x509.CertPool
	// Proxy is a proxy through which hosts are reached; nil: none. See [CheckProxy].
	Proxy *url.URL
	// NoProxy are the hosts that are reached without it, as in the variable NO_PROXY: names with those below them,
	// addresses and their prefixes, each with a port or without.
	NoProxy []string
	// UnusedProxy is the variable of the host's environment that names a proxy, if none is used: for [Error].Unused.
	UnusedProxy string

	// Ranges are special addresses that may be dialled all the same, see [address.ParseRange].
	Ranges []netip.Prefix

	Dial           time.Duration // of name, connection and TLS, each; default 10 s
	ResponseHeader time.Duration // from the end of a request to the head of its response; 0: as long as the client waits
	Stall          time.Duration // for the host to take a piece of a body, or to go on with a head; default 60 s
	Idle           time.Duration // of a pooled connection; default 90 s
	// UploadGrace is how long a complete response waits for the end of its request,
	// after which their connection is not used again; default 50 ms.
	UploadGrace time.Duration

	Clients     int            // how many client connections may be open; 0: the usual number
	Descriptors Descriptors    // bounds the connections; nil: they have no bound
	Memory      *budget.Budget // pays for the larger windows of HTTP/2; nil: there are none
}

// Descriptors bounds the file descriptors of connections. Acquire waits for n of
// them for a bounded time, and returns [budget.ErrOutOfDescriptors] or the error of ctx.
type Descriptors interface {
	Acquire(ctx context.Context, n int) error
	Release(n int)
}

// Client sends requests. All its methods are safe for concurrent use.
type Client struct {
	opts     Options
	resolver *net.Resolver
	byProxy  func(hostport string) bool
	identity [32]byte // makes the keys of this client its own
	versions alpnCache
	surveys  surveys
	direct   atomic.Bool // a host was reached without a proxy
	closings tasks       // connections that are being closed
	uploads  tasks       // request bodies on their way over HTTP/1.1

	keptBodies atomic.Int64 // bytes of request bodies that are kept

	wideSlots chan struct{} // streams with the larger window; nil: there are none

	mu     sync.Mutex
	pools  map[Key]*pool
	kept   map[Key]bool // see Keep
	closed bool
}

// New returns a client.
func New(opts Options) (*Client, error) {
	if opts.Dial == 0 {
		opts.Dial = 10 * time.Second
	}
	if opts.Stall == 0 {
		opts.Stall = 60 * time.Second
	}
	if opts.Idle == 0 {
		opts.Idle = 90 * time.Second
	}
	if opts.UploadGrace == 0 {
		opts.UploadGrace = 50 * time.Millisecond // net/http's transport takes as long
	}
	if opts.Proxy != nil {
		if err := CheckProxy(opts.Proxy); err != nil {
			return nil, err
		}
	}
	c := &Client{opts: opts, resolver: net.DefaultResolver, byProxy: byProxy(opts), pools: map[Key]*pool{}}
	_, _ = rand.Read(c.identity[:])
	if opts.Memory != nil {
		c.wideSlots = reserveWide(opts.Memory)
	}
	return c, nil
}

// Close closes the idle connections, waits until they are closed, and makes
// those in use end with their requests.
func (c *Client) Close() {
	c.mu.Lock()
	c.closed = true
	retired := c.removePools(func(Key) bool { return true })
	c.mu.Unlock()
	for _, p := range retired {
		p.retire()
	}
	c.closings.wait()
}

// Wait returns when no goroutine that the client has started for HTTP/1.1 is
// running. An upload ends with its request: call Wait when no request is under
// way.
func (c *Client) Wait() {
	c.uploads.wait()
	c.closings.wait()
}

// tasks counts goroutines.
type tasks struct {
	mu   sync.Mutex
	n    int
	idle chan struct{} // closed when n comes to zero; nil: nothing waits for that
}

// start calls f on a goroutine.
func (t *tasks) start(f func()) {
	t.mu.Lock()
	t.n++
	t.mu.Unlock()
	go func() {
		defer t.done()
		f()
	}()
}

func (t *tasks) done() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.n--; t.n == 0 && t.idle != nil {
		close(t.idle)
		t.idle = nil
	}
}

// wait returns when no goroutine is left. Others may start meanwhile.
func (t *tasks) wait() {
	t.mu.Lock()
	if t.n > 0 && t.idle == nil {
		t.idle = make(chan struct{})
	}
	idle := t.idle
	t.mu.Unlock()
	if idle != nil {
		<-idle
	}
}
