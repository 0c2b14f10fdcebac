package upstream

import (
	"bufio"
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

	mu   sync.Mutex
	head bool // the head of the response under way is there
}

// longAgo is a deadline that ends a read or a write at once.
var longAgo = time.Unix(1, 0)

// laneBuffer is how much of a response is read at a time, and largeBuffer
// what a connection may keep after a response with a larger head.
const (
	laneBuffer  = 4 << 10
	largeBuffer = 32 << 10
)

func (l *lane) newConn(key string, conn net.Conn, counted *countedConn) *laneConn {
	c := &laneConn{lane: l, key: key, counted: counted, conn: conn}
	c.r, c.w = bufio.NewReaderSize(c, laneBuffer), bufio.NewWriterSize(piecewise{conn}, laneBuffer)
	return c
}

// Read implements io.Reader for r.
func (c *laneConn) Read(p []byte) (int, error) {
	if c.left <= 0 {
		return 0, &headError{fault: tooLarge}
	}
	n, err := c.conn.Read(p)
	c.left -= int64(n)
	return n, err
}

// exchange sends r and reads the head of its response. upload is nil when r
// has no body.
func (c *laneConn) exchange(r *http.Request, a *attempt) (*upload, *http.Response, error) {
	c.head, c.left = false, maxResponseHead
	var up *upload
	if r.Body != nil {
		up = c.upload(r)
	} else if err := c.write(r); err != nil {
		return nil, nil, err
	}
	res, err := c.readResponse(r, a)
	if err == nil {
		c.left = math.MaxInt64
		c.stopWaiting()
		err = r.Context().Err() // whose deadline that must not undo
	}
	return up, res, err
}

// write sends a request without a body.
func (c *laneConn) write(r *http.Request) error {
	_ = c.conn.SetDeadline(time.Now().Add(c.lane.cfg.ResponseHeader))
	if err := r.Context().Err(); err != nil {
		return err // its end may have set a deadline before
	}
	if err := r.Write(c.w); err != nil {
		return err
	}
	return c.w.Flush()
}

// stopWaiting takes back the deadline of the response's head.
func (c *laneConn) stopWaiting() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.head = true
	_ = c.conn.SetDeadline(time.Time{})
}

// alive reports that the host has neither closed the connection nor sent
// something that no request asked for.
func (c *laneConn) alive() bool {
	if idleFor(c.since) > c.lane.cfg.Idle {
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
// response would be taken for the next one's.
func (c *laneConn) drained() bool {
	if c.conn == net.Conn(c.counted) {
		return true
	}
	defer c.conn.SetReadDeadline(time.Time{}) //nolint:errcheck // it is set again before it matters
	_ = c.conn.SetReadDeadline(longAgo)
	var one [1]byte
	n, err := c.conn.Read(one[:])
	return n == 0 && errors.Is(err, os.ErrDeadlineExceeded)
}

func (c *laneConn) end() { _ = c.conn.Close() }

// switchedConn is a connection that has left HTTP.
type switchedConn struct {
	net.Conn
	r *bufio.Reader // what came with the head is in it
}

func (s *switchedConn) Read(p []byte) (int, error) { return s.r.Read(p) }
