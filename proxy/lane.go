package proxy

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"math"
	"net"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// lane carries requests without a body over HTTP/1.1, on the goroutine that
// asks. net/http's transport has two more for each connection, and what they
// cost is a third of a small exchange. What streams upwards is the transport's:
// an answer may come before its request has left.
type lane struct {
	dial func(ctx context.Context, network, hostport string) (net.Conn, error)
	tls  *tls.Config // of all hosts; ServerName is the request's
	cfg  Upstream

	mu     sync.Mutex
	idle   map[string][]*laneConn // by scheme and "host:port", newest last
	n      int
	sweep  *time.Timer // ends what has been idle for too long; nil: nothing is
	closed bool
}

const (
	maxIdle         = 512
	maxIdlePerHost  = 128
	maxResponseHead = 256 << 10
	maxInterim      = 5 // answers before the answer
)

// laneConn is one connection. It is in the hands of one exchange, or idle.
type laneConn struct {
	lane    *lane
	key     string
	counted *countedConn
	conn    net.Conn // counted, or TLS on it
	r       *bufio.Reader
	w       *bufio.Writer
	left    int64 // bytes that may still be read for a head
	since   time.Time
}

var errResponseHead = errors.New("read the answer: its head is too large")

// Read implements io.Reader for r.
func (c *laneConn) Read(p []byte) (int, error) {
	if c.left <= 0 {
		return 0, errResponseHead
	}
	n, err := c.conn.Read(p)
	c.left -= int64(n)
	return n, err
}

// roundTrip sends r, whose Body is nil, and gives the answer's head. Its
// Body gives the connection back when it has been read to the end.
func (l *lane) roundTrip(r *http.Request, a *attempt) (*http.Response, error) {
	ctx := r.Context()
	c, err := l.take(ctx, r)
	if err != nil {
		return nil, err
	}
	a.conn, a.before = c.counted, c.counted.written.Load()
	stop := context.AfterFunc(ctx, func() { _ = c.conn.SetDeadline(time.Unix(1, 0)) })
	res, err := c.exchange(r, a)
	// The deadline of the head must not undo the one that the end of ctx set.
	if err == nil {
		_ = c.conn.SetDeadline(time.Time{})
		err = ctx.Err()
	}
	if err != nil {
		stop()
		_ = c.conn.Close()
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return nil, err
	}
	b := &laneBody{ReadCloser: res.Body, c: c, stop: stop, reuse: !res.Close && res.StatusCode != http.StatusSwitchingProtocols}
	if res.Body == http.NoBody {
		b.release(b.reuse)
		return res, nil
	}
	res.Body = b
	return res, nil
}

func (c *laneConn) exchange(r *http.Request, a *attempt) (*http.Response, error) {
	_ = c.conn.SetDeadline(time.Now().Add(c.lane.cfg.ResponseHeader))
	if err := r.Context().Err(); err != nil {
		return nil, err // its end may have set a deadline before
	}
	if err := r.Write(c.w); err != nil {
		return nil, err
	}
	if err := c.w.Flush(); err != nil {
		return nil, err
	}
	c.left = maxResponseHead
	for range maxInterim {
		if _, err := c.r.Peek(1); err != nil {
			return nil, err
		}
		a.answered.Store(true)
		res, err := http.ReadResponse(c.r, r)
		if err != nil {
			return nil, err
		}
		if res.StatusCode >= http.StatusOK || res.StatusCode == http.StatusSwitchingProtocols {
			c.left = math.MaxInt64
			return res, nil
		}
	}
	return nil, errors.New("read the answer: only interim ones came")
}

// take gives a connection that is idle and alive, or a new one.
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
	raw, err := l.dial(ctx, "tcp", hostport)
	if err != nil {
		return nil, err
	}
	c := &laneConn{lane: l, key: key, conn: raw}
	c.counted, _ = raw.(*countedConn)
	if r.URL.Scheme == "https" {
		cfg := l.tls.Clone()
		cfg.ServerName = r.URL.Hostname()
		secure := tls.Client(raw, cfg)
		ctx, cancel := context.WithTimeout(ctx, l.cfg.Dial)
		defer cancel()
		if err := secure.HandshakeContext(ctx); err != nil {
			_ = raw.Close()
			return nil, err
		}
		c.conn = secure
	}
	c.r, c.w = bufio.NewReaderSize(c, 4<<10), bufio.NewWriterSize(c.conn, 4<<10)
	return c, nil
}

// alive reports that the host has neither closed the connection nor sent
// something that nobody asked for.
func (c *laneConn) alive() bool {
	if time.Since(c.since) > c.lane.cfg.Idle {
		return false
	}
	tcp, ok := c.counted.Conn.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return false
	}
	quiet := false
	err = raw.Read(func(fd uintptr) bool {
		var one [1]byte
		_, _, err := unix.Recvfrom(int(fd), one[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
		quiet = errors.Is(err, unix.EAGAIN)
		return true
	})
	return err == nil && quiet && c.drained()
}

// drained reports that TLS holds nothing back either: a record behind the
// answer would be taken for the next one's.
func (c *laneConn) drained() bool {
	if c.conn == net.Conn(c.counted) {
		return true
	}
	defer c.conn.SetReadDeadline(time.Time{}) //nolint:errcheck // it is set again before it matters
	_ = c.conn.SetReadDeadline(time.Unix(1, 0))
	var one [1]byte
	n, err := c.conn.Read(one[:])
	return n == 0 && errors.Is(err, os.ErrDeadlineExceeded)
}

func (c *laneConn) end() { _ = c.conn.Close() }

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
	c.since = time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || l.n >= maxIdle || len(l.idle[c.key]) >= maxIdlePerHost {
		go c.end() // TLS says goodbye, and a dead host does not listen
		return
	}
	l.idle[c.key] = append(l.idle[c.key], c)
	l.n++
	if l.sweep == nil {
		l.sweep = time.AfterFunc(l.cfg.Idle, l.expire)
	}
}

// expire ends the connections that were idle for too long.
func (l *lane) expire() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for key, list := range l.idle {
		kept := list[:0]
		for _, c := range list {
			if time.Since(c.since) >= l.cfg.Idle {
				go c.end()
				l.n--
				continue
			}
			kept = append(kept, c)
		}
		clear(list[len(kept):])
		if l.idle[key] = kept; len(kept) == 0 {
			delete(l.idle, key)
		}
	}
	l.sweep = nil
	if l.n > 0 && !l.closed {
		l.sweep = time.AfterFunc(l.cfg.Idle/4, l.expire)
	}
}

// close ends what is idle; what is under way ends with its exchange.
func (l *lane) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	for _, list := range l.idle {
		for _, c := range list {
			go c.end()
		}
	}
	clear(l.idle)
	if l.n = 0; l.sweep != nil {
		l.sweep.Stop()
	}
}

// laneBody is an answer's body. It holds its connection until it ends.
type laneBody struct {
	io.ReadCloser
	c        *laneConn
	stop     func() bool // ends the watch over the request's context
	reuse    bool
	err      error // sticky
	released atomic.Bool
}

func (b *laneBody) Read(p []byte) (int, error) {
	if b.err != nil {
		return 0, b.err
	}
	if b.released.Load() {
		return 0, http.ErrBodyReadAfterClose
	}
	n, err := b.ReadCloser.Read(p)
	if b.err = err; err != nil {
		b.release(err == io.EOF && b.reuse)
	}
	return n, err
}

// Close ends the connection of a body that was not read to its end.
func (b *laneBody) Close() error {
	b.release(false)
	return nil
}

func (b *laneBody) release(reuse bool) {
	if b.released.Swap(true) {
		return
	}
	// Bytes behind the answer belong to nobody's request.
	if b.stop() && reuse && b.c.r.Buffered() == 0 {
		b.c.lane.put(b.c)
		return
	}
	_ = b.c.conn.Close()
}
