package upstream

import (
	"context"
	"net"
	"net/http"
	"sync"
	"time"
)

// h1Pool carries requests over HTTP/1.1 and keeps their connections. It reads the
// heads of responses raw: what net/http's transport repairs in silence is
// rejected here.
type h1Pool struct {
	dial     func(ctx context.Context, hostport string) (*countedConn, error)
	tls      *tlsDialer
	opts     Options
	closings *tasks
	uploads  *tasks

	mu     sync.Mutex
	idle   map[string][]*persistConn // by poolKey, newest last
	n      int
	expiry *time.Timer // closes what has been idle for too long; nil: nothing is idle
	closed bool
}

// Bounds of idle connections, at the usual number of clients.
const (
	maxIdle        = 512
	maxIdlePerHost = 128
)

// idleBounds returns how many connections may be idle, and how many of one host.
// Where more clients may be active, more are needed: a connection that is closed
// when a request ends is a handshake for the next one.
func (o *Options) idleBounds() (all, perHost int) {
	return max(maxIdle, o.Clients/4), max(maxIdlePerHost, o.Clients/8)
}

// roundTrip sends r with body, nil for none, and returns the head of its response.
// The response's body returns the connection to the pool when it has been read to
// the end.
func (h *h1Pool) roundTrip(r *http.Request, body *attemptBody, a *attempt) (*http.Response, error) {
	ctx := r.Context()
	pc, err := h.get(ctx, r, body != nil, a.limit)
	if err != nil {
		return nil, err
	}
	a.conn, a.writtenBefore, a.cancel = pc.counted, pc.counted.written.Load(), pc.onCancel
	stop := context.AfterFunc(ctx, pc.onCancel)
	sent, res, err := pc.exchange(ctx, r, body, a)
	if err != nil {
		stop()
		_ = pc.conn.Close()
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return nil, err
	}
	a.gotHeader.Store(true)
	if res.StatusCode == http.StatusSwitchingProtocols {
		if !stop() {
			_ = pc.conn.Close()
			return nil, ctx.Err()
		}
		pc.fitDeadline()
		res.Body = &switchedConn{Conn: pc.conn, r: pc.r}
		return res, nil
	}
	reuse := !res.Close
	res.Close = false // concerns the connection to the host only (RFC 9110 section 7.6.1)
	if b, ok := res.Body.(*h1Body); ok {
		b.stop, b.sent, b.reuse = stop, sent, reuse
	} else {
		(&h1Body{pc: pc, stop: stop, sent: sent}).release(reuse)
	}
	return res, nil
}

// get returns a connection that is idle and alive, or a new one, for an exchange
// that begins.
func (h *h1Pool) get(ctx context.Context, r *http.Request, upload bool, limit time.Duration) (*persistConn, error) {
	key := poolKey(r.URL.Scheme, r.URL.Host)
	for pc := h.pop(key); pc != nil; pc = h.pop(key) {
		pc.begin(upload, limit)
		if pc.alive() {
			return pc, nil
		}
		_ = pc.conn.Close()
	}
	pc, err := h.open(ctx, key, r)
	if err != nil {
		return nil, err
	}
	pc.begin(upload, limit)
	return pc, nil
}

// open returns a new connection to the host of r.
func (h *h1Pool) open(ctx context.Context, key string, r *http.Request) (*persistConn, error) {
	hostport := r.URL.Host
	if r.URL.Port() == "" {
		hostport = net.JoinHostPort(r.URL.Hostname(), map[string]string{"http": "80", "https": "443"}[r.URL.Scheme])
	}
	if r.URL.Scheme == "https" {
		secure, counted, err := h.tls.connect(ctx, hostport, "http/1.1")
		if err != nil {
			return nil, err
		}
		return h.newConn(key, secure, counted), nil
	}
	raw, err := h.dial(ctx, hostport)
	if err != nil {
		return nil, err
	}
	return h.newConn(key, raw, raw), nil
}

// poolKey returns the key of a host's connections. The host alone is that of
// https.
func poolKey(scheme, host string) string {
	if scheme == "https" {
		return host
	}
	return scheme + "://" + host
}

func (h *h1Pool) pop(key string) *persistConn {
	h.mu.Lock()
	defer h.mu.Unlock()
	list := h.idle[key]
	if len(list) == 0 {
		return nil
	}
	pc := list[len(list)-1]
	list[len(list)-1] = nil
	h.idle[key] = list[:len(list)-1]
	h.n--
	return pc
}

// put keeps a connection for the next exchange, or closes it when the pool is
// full or closed.
func (h *h1Pool) put(pc *persistConn) {
	if !h.tryPut(pc) {
		h.closings.start(pc.close)
	}
}

func (h *h1Pool) tryPut(pc *persistConn) bool {
	pc.idleSince = time.Now()
	h.mu.Lock()
	defer h.mu.Unlock()
	all, perHost := h.opts.idleBounds()
	if h.closed || h.n >= all || len(h.idle[pc.key]) >= perHost {
		return false
	}
	h.idle[pc.key] = append(h.idle[pc.key], pc)
	h.n++
	if h.expiry == nil {
		h.expiry = time.AfterFunc(h.opts.Idle, h.expire)
	}
	return true
}

// expire closes the connections that have been idle for too long.
func (h *h1Pool) expire() {
	h.mu.Lock()
	old := h.remove(func(pc *persistConn) bool { return elapsed(pc.idleSince) >= h.opts.Idle })
	h.expiry = nil
	if h.n > 0 && !h.closed {
		h.expiry = time.AfterFunc(h.opts.Idle/4, h.expire)
	}
	h.mu.Unlock()
	h.closeAll(old)
}

// elapsed returns how long ago since was, by the clock that shows more: the
// monotonic one stands still while a laptop is suspended, the other can be set.
func elapsed(since time.Time) time.Duration {
	now := time.Now()
	return max(now.Sub(since), now.Round(0).Sub(since.Round(0)))
}

// close closes the idle connections. Those in use are closed when their exchanges
// end.
func (h *h1Pool) close() {
	h.mu.Lock()
	h.closed = true
	all := h.remove(func(*persistConn) bool { return true })
	if h.expiry != nil {
		h.expiry.Stop()
	}
	h.mu.Unlock()
	h.closeAll(all)
}

// oldest returns the connection that has been idle for longest, and since when;
// nil when none is idle.
func (h *h1Pool) oldest() (oldest *persistConn, since time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, list := range h.idle {
		if len(list) > 0 && (oldest == nil || list[0].idleSince.Before(since)) {
			oldest, since = list[0], list[0].idleSince
		}
	}
	return oldest, since
}

// closeIdle closes an idle connection without TLS's close notification, which
// could take a while, and reports whether its descriptor is free.
func (h *h1Pool) closeIdle(pc *persistConn) bool {
	h.mu.Lock()
	removed := h.remove(func(other *persistConn) bool { return other == pc })
	h.mu.Unlock()
	for _, pc := range removed {
		_ = pc.counted.Close()
	}
	return len(removed) > 0
}

// remove takes such idle connections out of the pool. h.mu is held.
func (h *h1Pool) remove(such func(*persistConn) bool) []*persistConn {
	var removed []*persistConn
	for key, list := range h.idle {
		kept := list[:0]
		for _, pc := range list {
			if such(pc) {
				removed = append(removed, pc)
			} else {
				kept = append(kept, pc)
			}
		}
		clear(list[len(kept):])
		if h.idle[key] = kept; len(kept) == 0 {
			delete(h.idle, key)
		}
	}
	h.n -= len(removed)
	return removed
}

func (h *h1Pool) closeAll(conns []*persistConn) {
	for _, pc := range conns {
		h.closings.start(pc.close)
	}
}
