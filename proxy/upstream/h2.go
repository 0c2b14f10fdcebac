package upstream

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
)

// errSpeaksH1 is returned by a dial for HTTP/2 when the host chose HTTP/1.1.
// The connection waits in the pool's lane.
var errSpeaksH1 = errors.New("dial upstream: the host chose HTTP/1.1")

// dialH2 offers both versions of HTTP. net/http gets HTTP/2 connections only:
// its HTTP/1.1 transport repairs response heads that can be read in two ways.
func (p *pool) dialH2(ctx context.Context, _, hostport string) (net.Conn, error) {
	secure, counted, err := p.tls.connect(ctx, hostport, "h2", "http/1.1")
	if err != nil {
		return nil, err
	}
	if secure.ConnectionState().NegotiatedProtocol != "h2" {
		p.lane.put(p.lane.newConn("https://"+hostport, secure, counted))
		return nil, errSpeaksH1
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.retired && p.active == 0 { // the exchange that asked for it is gone
		_ = counted.Close()
		return nil, net.ErrClosed
	}
	p.open[counted] = &h2Conn{conn: secure}
	counted.closed = sync.OnceFunc(func() { p.forget(counted) })
	return secure, nil
}

func (p *pool) forget(c *countedConn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.open, c)
}

// roundTripH2 sends r over HTTP/2. The exchange ends with the response's body.
func (p *pool) roundTripH2(r *http.Request, a *attempt) (*http.Response, error) {
	p.mu.Lock()
	p.active++
	p.mu.Unlock()
	a.joined = p.join
	transport, giveBack := p.widest()
	end := sync.OnceFunc(func() { giveBack(); p.leave(a.conn) })
	res, err := transport.RoundTrip(r)
	if err != nil {
		end()
		return nil, err
	}
	if res.Body == http.NoBody {
		end()
		return res, nil
	}
	res.Body = &streamBody{ReadCloser: res.Body, end: end}
	return res, nil
}

// widest returns the transport with the larger window while the session has a
// stream of it to give, and how to give that back.
func (p *pool) widest() (*http.Transport, func()) {
	select {
	case p.wideSlots <- struct{}{}:
		return p.wide, func() { <-p.wideSlots }
	default:
		return p.h2, func() {}
	}
}

// join counts an exchange on its connection.
func (p *pool) join(c *countedConn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if open := p.open[c]; open != nil {
		open.exchanges++
	}
}

// leave ends an exchange on c, which is nil when it got no connection, and
// closes what a retired pool need not keep any longer.
func (p *pool) leave(c *countedConn) {
	p.mu.Lock()
	p.active--
	if open := p.open[c]; open != nil {
		open.exchanges--
	}
	var idle []*tls.Conn
	if p.retired {
		idle = p.takeIdle()
	}
	p.mu.Unlock()
	p.closeAll(idle)
}

// streamBody is the body of a response over HTTP/2.
type streamBody struct {
	io.ReadCloser
	end func()
}

func (b *streamBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil {
		b.end()
	}
	return n, err
}

func (b *streamBody) Close() error {
	err := b.ReadCloser.Close()
	b.end()
	return err
}
