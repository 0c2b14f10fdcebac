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
)

// Key identifies the value of a credential without revealing it. The zero key is
// that of requests that carry none.
type Key [sha256.Size]byte

// Key returns the key of the credential that consists of parts. It depends on
// their values alone: a credential that is bound again with another value has
// another key, and two bindings of one value share one. Two clients derive
// different keys from one value.
func (c *Client) Key(parts ...string) Key {
	mac := hmac.New(sha256.New, c.identity[:])
	for _, part := range parts {
		_ = binary.Write(mac, binary.BigEndian, uint64(len(part)))
		_, _ = mac.Write([]byte(part))
	}
	return Key(mac.Sum(nil))
}

// Keep retires the connections of all credentials but these. Requests that are
// under way on them go on; no other request gets them.
func (c *Client) Keep(keys ...Key) {
	c.mu.Lock()
	c.kept = map[Key]bool{{}: true}
	for _, key := range keys {
		c.kept[key] = true
	}
	retired := c.removePools(func(key Key) bool { return !c.kept[key] })
	c.mu.Unlock()
	for _, p := range retired {
		p.retire()
	}
}

// pool returns the pool of key. A request whose credential has been retired
// meanwhile gets a pool of its own, which ends with it.
func (c *Client) pool(key Key) *pool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p := c.pools[key]; p != nil {
		return p
	}
	p := c.newPool()
	if key != (Key{}) && !c.kept[key] || c.closed {
		p.retire()
		return p
	}
	c.pools[key] = p
	return p
}

// removePools takes the pools with such keys out of the map. c.mu is held.
func (c *Client) removePools(such func(Key) bool) []*pool {
	var removed []*pool
	for key, p := range c.pools {
		if such(key) {
			delete(c.pools, key)
			removed = append(removed, p)
		}
	}
	return removed
}

// CloseOldestIdle closes the HTTP/1.1 connection that has been idle for longest,
// and reports whether there was one. Otherwise it starts to close the idle
// connections of HTTP/2.
func (c *Client) CloseOldestIdle() bool {
	c.mu.Lock()
	pools := slices.Collect(maps.Values(c.pools))
	c.mu.Unlock()
	var oldest *persistConn
	var since time.Time
	for _, p := range pools {
		if pc, at := p.h1.oldest(); pc != nil && (oldest == nil || at.Before(since)) {
			oldest, since = pc, at
		}
	}
	if oldest != nil {
		return oldest.pool.closeIdle(oldest)
	}
	for _, p := range pools {
		c.closings.start(p.closeIdleH2)
	}
	return false
}

// pool is the connections and TLS sessions that requests with one credential
// share. Those of another credential never travel on them: some servers
// authenticate a connection rather than a request.
type pool struct {
	h1       *h1Pool
	h2       *http.Transport // HTTP/2 only
	wide     *http.Transport // like h2, with the larger window
	narrow   *http.Transport // and with a smaller one
	memory   *budget.Budget
	tls      *tlsDialer
	closings *tasks        // the client's
	slots    chan struct{} // the client's wideSlots

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

func (c *Client) newPool() *pool {
	dialer := &tlsDialer{
		dial:    c.dial,
		timeout: c.opts.Dial,
		config: &tls.Config{RootCAs: c.opts.Roots, MinVersion: tls.VersionTLS12,
			DynamicRecordSizingDisabled: true, // a request is one write, not one for each 1.2 KiB
			ClientSessionCache:          tls.NewLRUClientSessionCache(256), VerifyConnection: verifyStrength},
	}
	p := &pool{tls: dialer, closings: &c.closings, slots: c.wideSlots, open: map[*countedConn]*h2Conn{}}
	p.h1 = &h1Pool{dial: c.dial, tls: dialer, opts: c.opts, closings: &c.closings, uploads: &c.uploads,
		idle: map[string][]*persistConn{}}
	p.h2, p.wide = p.transport(c.opts, streamWindow), p.transport(c.opts, wideWindow)
	p.narrow, p.memory = p.transport(c.opts, narrowWindow), c.opts.Memory
	return p
}

// retire closes the idle connections. Those in use are closed as soon as their
// exchanges end; no other exchange gets them.
func (p *pool) retire() {
	p.h1.close()
	p.mu.Lock()
	p.retired = true
	idle := p.takeIdle()
	p.mu.Unlock()
	p.closeIdleH2()
	p.closeAll(idle)
}

// takeIdle takes the HTTP/2 connections without an exchange out of the map. When
// no exchange is left that could yet open a stream, that is all of them. p.mu is
// held.
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
	for _, conn := range conns {
		p.closings.start(func() { _ = conn.Close() })
	}
}
