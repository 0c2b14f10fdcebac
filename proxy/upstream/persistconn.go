package upstream

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"math"
	"net"
	"net/http"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// persistConn is one connection of HTTP/1.1. It belongs to one exchange at a
// time, or is idle.
type persistConn struct {
	pool      *h1Pool
	key       string // in pool.idle
	counted   *countedConn
	conn      net.Conn // counted, or TLS on it
	r         *bufio.Reader
	headLeft  int64 // bytes that may still be read for a head
	idleSince time.Time
	onCancel  func()          // abort
	socket    syscall.RawConn // of counted; nil: not asked for yet
	peek      func(fd uintptr) bool
	quiet     bool    // peek found nothing
	one       [1]byte // what peek and drained read into
	failed    error   // what awaitBytes read in place of bytes; the next read returns it

	mu      sync.Mutex
	limit   time.Duration // for the head of the response; 0 is none
	begun   bool          // a part of the head has come
	gotHead bool          // the head of the response is there
	timed   bool          // the connection has a deadline of the head
	aborted bool          // the exchange is canceled: the deadline is in the past, and stays there
}

// aLongTimeAgo is a deadline that ends a read or a write at once.
var aLongTimeAgo = time.Unix(1, 0)

const (
	connBuffer    = 4 << 10  // how much of a response is read at a time
	maxConnBuffer = 32 << 10 // what a connection may keep after a response with a larger head
)

func (h *h1Pool) newConn(key string, conn net.Conn, counted *countedConn) *persistConn {
	pc := &persistConn{pool: h, key: key, counted: counted, conn: conn}
	pc.r = bufio.NewReaderSize(pc, connBuffer)
	pc.onCancel = pc.abort
	pc.peek = func(fd uintptr) bool {
		_, _, err := unix.Recvfrom(int(fd), pc.one[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
		pc.quiet = errors.Is(err, unix.EAGAIN)
		return true
	}
	return pc
}

// Read implements io.Reader for r.
func (pc *persistConn) Read(p []byte) (int, error) {
	if pc.headLeft <= 0 {
		return 0, &headError{rule: tooLarge}
	}
	if pc.failed != nil {
		return 0, pc.failed
	}
	pc.fitDeadline()
	n, err := pc.conn.Read(p)
	pc.headLeft -= int64(n)
	return n, err
}

// begin sets the deadline of the response's head, of which limit is the time, for
// a new exchange, whose request has no body. That of an upload begins when the body
// has left.
func (pc *persistConn) begin(upload bool, limit time.Duration) {
	pc.mu.Lock()
	defer pc.mu.Unlock()
	pc.gotHead, pc.begun, pc.aborted, pc.limit, pc.timed = false, false, false, limit, !upload && limit > 0
	until := time.Time{}
	if pc.timed {
		until = time.Now().Add(limit)
	}
	_ = pc.conn.SetDeadline(until)
}

// abort ends what the exchange reads and writes. Its deadline is not undone.
func (pc *persistConn) abort() {
	pc.mu.Lock()
	defer pc.mu.Unlock()
	pc.aborted = true
	_ = pc.conn.SetDeadline(aLongTimeAgo)
}

// startHeadTimeout sets the deadline of the response's head, now that the request
// has left.
func (pc *persistConn) startHeadTimeout() {
	pc.mu.Lock()
	defer pc.mu.Unlock()
	if !pc.gotHead && !pc.aborted && pc.limit > 0 {
		pc.timed = true
		_ = pc.conn.SetReadDeadline(time.Now().Add(pc.limit))
	}
}

// nextHead records that the head which is read next has not begun, unless a part of
// it came with the one before.
func (pc *persistConn) nextHead() {
	pc.mu.Lock()
	defer pc.mu.Unlock()
	pc.begun = pc.r.Buffered() > 0
	if pc.timed && pc.limit == 0 && !pc.aborted {
		pc.timed = false
		_ = pc.conn.SetReadDeadline(time.Time{})
	}
}

// endHead records that the head of the response is there. Its deadline is taken
// back by the next read, of which a small response needs none.
func (pc *persistConn) endHead() {
	pc.mu.Lock()
	defer pc.mu.Unlock()
	pc.gotHead = true
}

// awaitBytes waits until enough has come, at most until then, and reports whether it
// has: bytes or an error.
func (pc *persistConn) awaitBytes(until time.Time, enough func() bool) bool {
	if enough() {
		return true
	}
	pc.mu.Lock()
	if !pc.aborted {
		pc.timed = false
		_ = pc.conn.SetReadDeadline(until) // the last piece of an upload may still be on its way
	}
	pc.mu.Unlock()
	var err error
	for err == nil && !enough() {
		_, err = pc.r.Peek(pc.r.Buffered() + 1)
	}
	pc.mu.Lock()
	defer pc.mu.Unlock()
	if pc.aborted {
		return true
	}
	_ = pc.conn.SetDeadline(time.Time{})
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return false
	}
	pc.failed = err
	return true
}

// fitDeadline takes back the deadline of a head that is there. One that has begun
// gets a deadline if it has none: it must not keep its client waiting for ever.
func (pc *persistConn) fitDeadline() {
	pc.mu.Lock()
	defer pc.mu.Unlock()
	switch {
	case pc.aborted:
	case pc.gotHead && pc.timed:
		pc.timed = false
		_ = pc.conn.SetDeadline(time.Time{})
	case !pc.gotHead && !pc.timed && pc.begun && pc.pool.opts.Stall > 0:
		pc.timed = true
		_ = pc.conn.SetReadDeadline(time.Now().Add(pc.pool.opts.Stall))
	}
	pc.begun = true
}

// exchange sends r with body, nil for none, and reads the head of its response.
// The upload is nil when r has no body.
func (pc *persistConn) exchange(
	ctx context.Context, r *http.Request, body *attemptBody, a *attempt,
) (*upload, *http.Response, error) {
	pc.headLeft = maxResponseHead
	var up *upload
	if body != nil {
		var err error
		if up, err = pc.startUpload(r, body); err != nil {
			return nil, nil, err
		}
	} else if err := pc.write(ctx, r); err != nil {
		return nil, nil, err
	}
	res, err := pc.readResponse(r.Method, a)
	if err == nil {
		pc.headLeft = math.MaxInt64
		pc.endHead()
		err = ctx.Err()
	}
	return up, res, err
}

// write sends a request without a body, in one piece.
func (pc *persistConn) write(ctx context.Context, r *http.Request) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	pooled := writeBuffers.Get().(*[]byte)
	defer writeBuffers.Put(pooled)
	head, err := appendRequestHead((*pooled)[:0], r, false)
	if err != nil {
		return err
	}
	_, err = pc.conn.Write(head)
	return err
}

// alive reports whether the connection can carry a request: the host has neither
// closed it nor sent something that no request asked for.
func (pc *persistConn) alive() bool {
	if elapsed(pc.idleSince) > pc.pool.opts.Idle {
		return false
	}
	if pc.socket == nil {
		tcp, ok := pc.counted.Conn.(syscall.Conn)
		if !ok {
			return false
		}
		socket, err := tcp.SyscallConn()
		if err != nil {
			return false
		}
		pc.socket = socket
	}
	pc.quiet = false
	err := pc.socket.Read(pc.peek)
	return err == nil && pc.quiet && pc.drained()
}

// drained reports whether TLS holds nothing back either: a record behind the
// response would be taken for the next one's. The socket, which has been peeked
// at, is not read for that.
func (pc *persistConn) drained() bool {
	secure, ok := pc.conn.(*tls.Conn)
	if !ok {
		return true
	}
	pc.counted.shut = true
	defer func() { pc.counted.shut = false }()
	n, err := secure.Read(pc.one[:])
	return n == 0 && errors.Is(err, os.ErrDeadlineExceeded)
}

func (pc *persistConn) close() { _ = pc.conn.Close() }

// switchedConn is a connection that has left HTTP.
type switchedConn struct {
	net.Conn
	r *bufio.Reader // what came with the head is in it
}

// Read implements io.Reader.
func (s *switchedConn) Read(p []byte) (int, error) { return s.r.Read(p) }
