package upstream

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ALRubinger/aileron/proxy/budget"
	"github.com/ALRubinger/aileron/proxy/wire"
)

// streamWindow is how much of a response over HTTP/2 may come before its client
// takes it. net/http's default, 4 MiB for each stream, lets a client that reads
// nothing fill the memory. There is no window for the whole connection: streams
// that stand still would close it for the others.
//
// A window is also the most that a stream moves in one round trip, so up to
// wideStreams of a session have a larger one: wideWindow moves 17 MB/s at 30 ms,
// where streamWindow moves 2. Windows fill before anything is taken from the
// budget for them: while it is tight, new streams have narrowWindow.
const (
	narrowWindow = 16 << 10
	streamWindow = wire.Window
	wideWindow   = 512 << 10
	wideStreams  = 4
)

// reserveWide takes the larger windows out of the budget for good, at most a
// quarter of it, and returns a channel with room for a value per window.
func reserveWide(b *budget.Budget) chan struct{} {
	const more = wideWindow - streamWindow
	n := min(wideStreams, b.Size()/4/more)
	b.Reserve(n * more)
	return make(chan struct{}, n)
}

// transport returns net/http's transport for HTTP/2, whose streams may each be
// window bytes ahead of their clients.
func (p *pool) transport(opts Options, window int) *http.Transport {
	var protocols http.Protocols
	protocols.SetHTTP2(true)
	return &http.Transport{
		Proxy:                  nil, // never from the environment
		DialTLSContext:         p.dialH2,
		IdleConnTimeout:        opts.Idle,
		MaxIdleConns:           maxIdle,
		MaxIdleConnsPerHost:    maxIdlePerHost,
		MaxResponseHeaderBytes: maxResponseHead,
		DisableCompression:     true, // the bytes are the host's own
		Protocols:              &protocols,
		// A connection that died silently (sleep, another network) is noticed,
		// and not used again.
		HTTP2: &http.HTTP2Config{
			SendPingTimeout: 15 * time.Second, PingTimeout: 15 * time.Second, MaxReceiveBufferPerStream: window,
		},
	}
}

// errChoseH1 is returned by a dial for HTTP/2 when the host chose HTTP/1.1. The
// connection is idle in the pool of HTTP/1.1.
var errChoseH1 = errors.New("dial upstream: the host chose HTTP/1.1")

// dialH2 offers both versions of HTTP. net/http gets connections of HTTP/2 only:
// its HTTP/1.1 transport repairs response heads that can be read in two ways.
func (p *pool) dialH2(ctx context.Context, _, hostport string) (net.Conn, error) {
	secure, counted, err := p.tls.connect(ctx, hostport, "h2", "http/1.1")
	if err != nil {
		return nil, err
	}
	if secure.ConnectionState().NegotiatedProtocol != "h2" {
		p.h1.put(p.h1.newConn(poolKey("https", hostport), secure, counted))
		return nil, errChoseH1
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.retired && p.active == 0 { // the exchange that asked for it is gone
		_ = counted.Close()
		return nil, net.ErrClosed
	}
	p.open[counted] = &h2Conn{conn: secure}
	counted.outbox = newOutbox(counted.send)
	counted.onClose = sync.OnceFunc(func() { p.forget(counted) })
	return secure, nil
}

func (p *pool) forget(conn *countedConn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.open, conn)
}

// roundTripH2 sends r over HTTP/2. The exchange ends with the response's body.
func (p *pool) roundTripH2(r *http.Request, a *attempt) (*http.Response, error) {
	p.mu.Lock()
	p.active++
	p.mu.Unlock()
	a.onConn = p.join
	transport, wide := p.widest()
	b := &h2Body{p: p, a: a, wide: wide}
	res, err := transport.RoundTrip(r)
	if err != nil {
		b.end()
		return nil, err
	}
	if res.Body == http.NoBody && r.Body == nil {
		b.end()
		return res, nil
	}
	b.ReadCloser, res.Body = res.Body, b
	return res, nil
}

// widest returns the transport with the largest window that there is room for, and reports whether that is one of
// the larger ones, of which the client has a few.
func (p *pool) widest() (transport *http.Transport, wide bool) {
	select {
	case p.slots <- struct{}{}:
		return p.wide, true
	default:
	}
	if p.memory.Tight() {
		return p.narrow, false
	}
	return p.h2, false
}

// closeIdleH2 closes the connections of HTTP/2 without an exchange.
func (p *pool) closeIdleH2() {
	for _, t := range []*http.Transport{p.narrow, p.h2, p.wide} {
		t.CloseIdleConnections()
	}
}

// join counts an exchange on its connection.
func (p *pool) join(conn *countedConn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if open := p.open[conn]; open != nil {
		open.exchanges++
		conn.outbox.exchanges.Add(1)
	}
}

// leave ends an exchange on conn, which is nil when it got no connection, and
// closes what a retired pool need not keep any longer.
func (p *pool) leave(conn *countedConn) {
	p.mu.Lock()
	p.active--
	if open := p.open[conn]; open != nil {
		open.exchanges--
		conn.outbox.exchanges.Add(-1)
	}
	var idle []*tls.Conn
	if p.retired {
		idle = p.takeIdle()
	}
	p.mu.Unlock()
	p.closeAll(idle)
}

// h2Body is the body of a response over HTTP/2.
type h2Body struct {
	io.ReadCloser
	p     *pool
	a     *attempt
	wide  bool // it has one of the larger windows
	ended atomic.Bool
}

// end ends the exchange.
func (b *h2Body) end() {
	if b.ended.Swap(true) {
		return
	}
	if b.wide {
		<-b.p.slots
	}
	b.p.leave(b.a.conn)
	b.a.cancel()
}

// Read implements io.Reader.
func (b *h2Body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil {
		b.end()
	}
	return n, err
}

// Close implements io.Closer.
func (b *h2Body) Close() error {
	err := b.ReadCloser.Close()
	b.end()
	return err
}
