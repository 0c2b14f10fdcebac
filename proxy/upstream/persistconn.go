package upstream

import (
	"bufio"
	"errors"
	"io"
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
	w         *bufio.Writer
	headLeft  int64 // bytes that may still be read for a head
	idleSince time.Time

	mu      sync.Mutex
	gotHead bool // the head of the response is there
}

// aLongTimeAgo is a deadline that ends a read or a write at once.
var aLongTimeAgo = time.Unix(1, 0)

const (
	connBuffer    = 4 << 10  // how much of a response is read at a time
	maxConnBuffer = 32 << 10 // what a connection may keep after a response with a larger head
)

func (h *h1Pool) newConn(key string, conn net.Conn, counted *countedConn) *persistConn {
	pc := &persistConn{pool: h, key: key, counted: counted, conn: conn}
	pc.r, pc.w = bufio.NewReaderSize(pc, connBuffer), bufio.NewWriterSize(unbuffered{conn}, connBuffer)
	return pc
}

// Read implements io.Reader for r.
func (pc *persistConn) Read(p []byte) (int, error) {
	if pc.headLeft <= 0 {
		return 0, &headError{rule: tooLarge}
	}
	n, err := pc.conn.Read(p)
	pc.headLeft -= int64(n)
	return n, err
}

// exchange sends r and reads the head of its response. The upload is nil when r
// has no body.
func (pc *persistConn) exchange(r *http.Request, a *attempt) (*upload, *http.Response, error) {
	pc.gotHead, pc.headLeft = false, maxResponseHead
	var up *upload
	if r.Body != nil {
		up = pc.startUpload(r)
	} else if err := pc.write(r); err != nil {
		return nil, nil, err
	}
	res, err := pc.readResponse(r, a)
	if err == nil {
		pc.headLeft = math.MaxInt64
		pc.clearDeadline()
		err = r.Context().Err() // whose deadline that must not undo
	}
	return up, res, err
}

// write sends a request without a body.
func (pc *persistConn) write(r *http.Request) error {
	_ = pc.conn.SetDeadline(time.Now().Add(pc.pool.opts.ResponseHeader))
	if err := r.Context().Err(); err != nil {
		return err // its end may have set a deadline before
	}
	if err := r.Write(pc.w); err != nil {
		return err
	}
	return pc.w.Flush()
}

// clearDeadline takes back the deadline of the response's head.
func (pc *persistConn) clearDeadline() {
	pc.mu.Lock()
	defer pc.mu.Unlock()
	pc.gotHead = true
	_ = pc.conn.SetDeadline(time.Time{})
}

// alive reports whether the connection can carry a request: the host has neither
// closed it nor sent something that no request asked for.
func (pc *persistConn) alive() bool {
	if elapsed(pc.idleSince) > pc.pool.opts.Idle {
		return false
	}
	tcp, ok := pc.counted.Conn.(syscall.Conn)
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
	return err == nil && quiet && pc.drained()
}

// drained reports whether TLS holds nothing back either: a record behind the
// response would be taken for the next one's.
func (pc *persistConn) drained() bool {
	if pc.conn == net.Conn(pc.counted) {
		return true
	}
	defer pc.conn.SetReadDeadline(time.Time{}) //nolint:errcheck // it is set again before it matters
	_ = pc.conn.SetReadDeadline(aLongTimeAgo)
	var one [1]byte
	n, err := pc.conn.Read(one[:])
	return n == 0 && errors.Is(err, os.ErrDeadlineExceeded)
}

func (pc *persistConn) close() { _ = pc.conn.Close() }

// unbuffered sends each piece of a body as it comes, where a bufio.Writer would
// wait until it is full.
type unbuffered struct{ net.Conn }

// ReadFrom implements io.ReaderFrom.
func (u unbuffered) ReadFrom(r io.Reader) (int64, error) {
	return io.Copy(struct{ io.Writer }{u.Conn}, r)
}

// switchedConn is a connection that has left HTTP.
type switchedConn struct {
	net.Conn
	r *bufio.Reader // what came with the head is in it
}

// Read implements io.Reader.
func (s *switchedConn) Read(p []byte) (int, error) { return s.r.Read(p) }
