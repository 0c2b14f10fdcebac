package upstream

import (
	"context"
	"net"
	"net/http"
	"sync"
	"time"
)

// lane carries requests over HTTP/1.1. Its response heads are read raw: what
// net/http's transport repairs in silence is refused here.
type lane struct {
	dial func(ctx context.Context, hostport string) (*countedConn, error)
	tls  *tlsDialer
	cfg  Options
	ends *errands

	mu     sync.Mutex
	idle   map[string][]*laneConn // by scheme and "host:port", newest last
	n      int
	sweep  *time.Timer // ends what has been idle for too long; nil: nothing is
	closed bool
}

const (
	maxIdle        = 512
	maxIdlePerHost = 128
)

// roundTrip sends r and returns the head of its response. The response's body
// returns the connection to the pool when it has been read to the end.
func (l *lane) roundTrip(r *http.Request, a *attempt) (*http.Response, error) {
	ctx := r.Context()
	c, err := l.take(ctx, r)
	if err != nil {
		return nil, err
	}
	a.conn, a.before = c.counted, c.counted.written.Load()
	stop := context.AfterFunc(ctx, func() { _ = c.conn.SetDeadline(longAgo) })
	sent, res, err := c.exchange(r, a)
	if err != nil {
		stop()
		_ = c.conn.Close()
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return nil, err
	}
	if res.StatusCode == http.StatusSwitchingProtocols {
		if !stop() {
			_ = c.conn.Close()
			return nil, ctx.Err()
		}
		res.Body = &switchedConn{Conn: c.conn, r: c.r}
		return res, nil
	}
	b := &laneBody{ReadCloser: res.Body, c: c, stop: stop, sent: sent, reuse: !res.Close}
	res.Close = false // concerns the connection to the upstream only (RFC 9110 section 7.6.1)
	if res.Body == http.NoBody {
		b.release(b.reuse)
		return res, nil
	}
	res.Body = b
	return res, nil
}

// take returns a connection that is idle and alive, or a new one.
func (l *lane) take(ctx context.Context, r *http.Request) (*laneConn, error) {
	key := r.URL.Scheme + "://" + r.URL.Host
	for c := l.pop(key); c != nil; c = l.pop(key) {
		if c.alive() {
			return c, nil
		}
		_ = c.conn.Close()
	}
	hostport := r.URL.Host
	if r.URL.Port() == "" {
		hostport = net.JoinHostPort(r.URL.Hostname(), map[string]string{"http": "80", "https": "443"}[r.URL.Scheme])
	}
	if r.URL.Scheme == "https" {
		secure, counted, err := l.tls.connect(ctx, hostport, "http/1.1")
		if err != nil {
			return nil, err
		}
		return l.newConn(key, secure, counted), nil
	}
	raw, err := l.dial(ctx, hostport)
	if err != nil {
		return nil, err
	}
	return l.newConn(key, raw, raw), nil
}

func (l *lane) pop(key string) *laneConn {
	l.mu.Lock()
	defer l.mu.Unlock()
	list := l.idle[key]
	if len(list) == 0 {
		return nil
	}
	c := list[len(list)-1]
	list[len(list)-1] = nil
	l.idle[key] = list[:len(list)-1]
	l.n--
	return c
}

// put keeps a connection for the next exchange.
func (l *lane) put(c *laneConn) {
	if !l.keeps(c) {
		l.ends.run(c.end)
	}
}

func (l *lane) keeps(c *laneConn) bool {
	c.since = time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || l.n >= maxIdle || len(l.idle[c.key]) >= maxIdlePerHost {
		return false
	}
	l.idle[c.key] = append(l.idle[c.key], c)
	l.n++
	if l.sweep == nil {
		l.sweep = time.AfterFunc(l.cfg.Idle, l.expire)
	}
	return true
}

// expire closes the connections that were idle for too long.
func (l *lane) expire() {
	l.mu.Lock()
	old := l.remove(func(c *laneConn) bool { return idleFor(c.since) >= l.cfg.Idle })
	l.sweep = nil
	if l.n > 0 && !l.closed {
		l.sweep = time.AfterFunc(l.cfg.Idle/4, l.expire)
	}
	l.mu.Unlock()
	l.endAll(old)
}

// idleFor returns how long ago since was, by the clock that shows more: the
// monotonic one stands still while a laptop is suspended, the other can be set.
func idleFor(since time.Time) time.Duration {
	now := time.Now()
	return max(now.Sub(since), now.Round(0).Sub(since.Round(0)))
}

// close closes what is idle. What is under way is closed when its exchange
// ends.
func (l *lane) close() {
	l.mu.Lock()
	l.closed = true
	all := l.remove(func(*laneConn) bool { return true })
	if l.sweep != nil {
		l.sweep.Stop()
	}
	l.mu.Unlock()
	l.endAll(all)
}

// oldest returns the connection that has been idle for longest, and since when;
// nil when none is.
func (l *lane) oldest() (oldest *laneConn, since time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, list := range l.idle {
		if len(list) > 0 && (oldest == nil || list[0].since.Before(since)) {
			oldest, since = list[0], list[0].since
		}
	}
	return oldest, since
}

// giveUp closes an idle connection without a farewell, which could take a
// while, and reports whether its descriptor is free.
func (l *lane) giveUp(c *laneConn) bool {
	l.mu.Lock()
	removed := l.remove(func(other *laneConn) bool { return other == c })
	l.mu.Unlock()
	for _, c := range removed {
		_ = c.counted.Close()
	}
	return len(removed) > 0
}

// remove takes such idle connections off the lane. l.mu is held.
func (l *lane) remove(such func(*laneConn) bool) []*laneConn {
	var removed []*laneConn
	for key, list := range l.idle {
		kept := list[:0]
		for _, c := range list {
			if such(c) {
				removed = append(removed, c)
			} else {
				kept = append(kept, c)
			}
		}
		clear(list[len(kept):])
		if l.idle[key] = kept; len(kept) == 0 {
			delete(l.idle, key)
		}
	}
	l.n -= len(removed)
	return removed
}

func (l *lane) endAll(conns []*laneConn) {
	for _, c := range conns {
		l.ends.run(c.end)
	}
}
