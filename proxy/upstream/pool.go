package upstream

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/tls"
	"encoding/binary"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/ALRubinger/aileron/proxy/budget"
	"github.com/ALRubinger/aileron/proxy/wire"
)

// Key identifies the value of a credential without revealing it. The zero key is
// that of requests that carry none.
type Key [sha256.Size]byte

// Key returns the key of the credential that consists of parts. It depends on
// their values alone: one that is bound again with another value gets another
// key, and two bindings of one value share one. Another client derives another
// key.
func (u *Client) Key(parts ...string) Key {
	mac := hmac.New(sha256.New, u.identity[:])
	for _, part := range parts {
		_ = binary.Write(mac, binary.BigEndian, uint64(len(part)))
		_, _ = mac.Write([]byte(part))
	}
	return Key(mac.Sum(nil))
}

// pool is the connections and TLS sessions that requests with one credential
// share. Those of another credential never travel on them: some servers
// authenticate a connection rather than a request.
type pool struct {
	lane *lane           // HTTP/1.1
	h2   *http.Transport // HTTP/2 only
	wide *http.Transport // like h2, with the larger window
	tls  *tlsDialer
	ends *errands

	wideSlots chan struct{} // the session's; a value is a stream that has the larger window

	mu      sync.Mutex
	active  int // exchanges over HTTP/2
	retired bool
	open    map[*countedConn]*h2Conn
}

// h2Conn is an HTTP/2 connection and the number of exchanges on it.
type h2Conn struct {
	conn      *tls.Conn
	exchanges int
}

// streamWindow is how much of a response over HTTP/2 may come before its client
// takes it. net/http's default, 4 MiB for each stream, lets a client that reads
// nothing fill the memory. There is no window for the whole connection: streams
// that stand still would close it for the others.
//
// A window is also the most that a stream moves in one round trip, so up to
// wideStreams of a session have a larger one: wideWindow moves 17 MB/s at 30 ms,
// where streamWindow moves 2.
const (
	streamWindow = wire.Window
	wideWindow   = 512 << 10
	wideStreams  = 4
)

func (u *Client) newPool() *pool {
	p := &pool{ends: &u.ends, wideSlots: u.wideSlots, open: map[*countedConn]*h2Conn{}, tls: &tlsDialer{
		dial: u.dial,
		span: u.cfg.Dial,
		config: &tls.Config{RootCAs: u.cfg.Roots, MinVersion: tls.VersionTLS12,
			ClientSessionCache: tls.NewLRUClientSessionCache(256), VerifyConnection: verifyStrength},
	}}
	p.lane = &lane{tls: p.tls, dial: u.dial, cfg: u.cfg, ends: &u.ends, idle: map[string][]*laneConn{}}
	p.h2, p.wide = p.transport(u.cfg, streamWindow), p.transport(u.cfg, wideWindow)
	return p
}

// transport returns net/http's transport for HTTP/2, whose streams may each be
// window bytes ahead of their clients.
func (p *pool) transport(cfg Options, window int) *http.Transport {
	var protocols http.Protocols
	protocols.SetHTTP2(true)
	return &http.Transport{
		Proxy:                  nil, // never from the environment
		DialTLSContext:         p.dialH2,
		ResponseHeaderTimeout:  cfg.ResponseHeader,
		IdleConnTimeout:        cfg.Idle,
		MaxIdleConns:           512,
		MaxIdleConnsPerHost:    128,
		MaxResponseHeaderBytes: maxResponseHead,
		DisableCompression:     true, // the bytes are the upstream's own
		Protocols:              &protocols,
		// A connection that died silently (sleep, another network) is noticed,
		// and not used again.
		HTTP2: &http.HTTP2Config{
			SendPingTimeout: 15 * time.Second, PingTimeout: 15 * time.Second, MaxReceiveBufferPerStream: window,
		},
	}
}

// reserveWide takes the larger windows out of the budget for good, at most a
// quarter of it.
func (u *Client) reserveWide(b *budget.Budget) {
	const more = wideWindow - streamWindow
	n := min(wideStreams, b.Size()/4/more)
	b.Reserve(n * more)
	u.wideSlots = make(chan struct{}, n)
}

// pool returns the pool of key. An exchange whose grants have been replaced
// meanwhile gets one of its own, which ends with it.
func (u *Client) pool(key Key) *pool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if p := u.pools[key]; p != nil {
		return p
	}
	p := u.newPool()
	if key != (Key{}) && !u.granted[key] || u.closed {
		p.retire()
		return p
	}
	u.pools[key] = p
	return p
}

// Keep retires the connections of all credentials but these. Requests under way
// on them end as they would; no other request gets them.
func (u *Client) Keep(granted ...Key) {
	u.mu.Lock()
	u.granted = map[Key]bool{{}: true}
	for _, key := range granted {
		u.granted[key] = true
	}
	retired := u.removePools(func(key Key) bool { return !u.granted[key] })
	u.mu.Unlock()
	for _, p := range retired {
		p.retire()
	}
}

// removePools takes the pools with such keys off the map. u.mu is held.
func (u *Client) removePools(such func(Key) bool) []*pool {
	var removed []*pool
	for key, p := range u.pools {
		if such(key) {
			delete(u.pools, key)
			removed = append(removed, p)
		}
	}
	return removed
}

// Close retires all connections and waits until the idle ones are closed.
func (u *Client) Close() {
	u.mu.Lock()
	u.closed = true
	retired := u.removePools(func(Key) bool { return true })
	u.mu.Unlock()
	for _, p := range retired {
		p.retire()
	}
	u.ends.close()
}

// CloseOldestIdle closes the HTTP/1.1 connection that has been idle for longest, and
// reports whether there was one. Otherwise the idle ones of HTTP/2 are closed,
// soon.
func (u *Client) CloseOldestIdle() bool {
	u.mu.Lock()
	pools := slices.Collect(maps.Values(u.pools))
	u.mu.Unlock()
	var oldest *laneConn
	var since time.Time
	for _, p := range pools {
		if c, at := p.lane.oldest(); c != nil && (oldest == nil || at.Before(since)) {
			oldest, since = c, at
		}
	}
	if oldest != nil {
		return oldest.lane.giveUp(oldest)
	}
	for _, p := range pools {
		u.ends.run(func() { p.h2.CloseIdleConnections(); p.wide.CloseIdleConnections() })
	}
	return false
}

// retire closes the idle connections. Those under way are closed as soon as
// their exchanges end; no other exchange gets them.
func (p *pool) retire() {
	p.lane.close()
	p.mu.Lock()
	p.retired = true
	idle := p.takeIdle()
	p.mu.Unlock()
	p.h2.CloseIdleConnections()
	p.wide.CloseIdleConnections()
	p.closeAll(idle)
}

// takeIdle takes the HTTP/2 connections without an exchange off the map. When
// no exchange is left that could yet open a stream, that is all of them. p.mu
// is held.
func (p *pool) takeIdle() []*tls.Conn {
	var idle []*tls.Conn
	for counted, c := range p.open {
		if c.exchanges == 0 || p.active == 0 {
			delete(p.open, counted)
			idle = append(idle, c.conn)
		}
	}
	return idle
}

func (p *pool) closeAll(conns []*tls.Conn) {
	for _, c := range conns {
		p.ends.run(func() { _ = c.Close() })
	}
}
