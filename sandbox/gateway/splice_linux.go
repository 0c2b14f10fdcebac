package gateway

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ALRubinger/aileron/internal/peer"
)

// lingerTimeout bounds how long a client may go on sending what is not read.
const lingerTimeout = 5 * time.Second

// stream is a TCP connection or one of a unix socket. What is no stream is TLS.
type stream interface {
	half
	syscall.Conn
}

// splice moves bytes both ways until both directions have ended, and closes both
// connections. Each end is passed on when it comes: a half-close as a half-close,
// and the end of a client that is gone as the end of the connection. dialled is
// the address that the client connected to.
func (r *relay) splice(ctx context.Context, client *net.TCPConn, proxy half, dialled netip.AddrPort) {
	stop := context.AfterFunc(ctx, func() { abort(proxy) }) // the client's is closed by accept
	defer stop()
	defer proxy.Close()
	moved := &activity{began: time.Now()}
	answered := make(chan struct{}) // closed when the response has ended
	var up sync.WaitGroup
	up.Go(func() {
		if r.pump(proxy, client, moved) {
			if departed(client, dialled, answered) {
				abort(proxy)
			}
			return
		}
		// The proxy reads no more, yet the end of its response may still be on
		// its way: closing now would reset the connection and lose it.
		_ = client.SetReadDeadline(time.Now().Add(lingerTimeout))
		_, _ = io.Copy(io.Discard, client)
	})
	if !r.pump(client, proxy, moved) { // the client takes no response
		_ = client.Close()
		abort(proxy)
	}
	close(answered)
	up.Wait()
}

// abort closes a connection to the proxy whose client is gone. Over TCP the proxy learns that by a reset alone: the end
// of a client's half of a connection is none of the client.
func abort(proxy half) {
	if wrapper, ok := proxy.(interface{ NetConn() net.Conn }); ok {
		if tcp, ok := wrapper.NetConn().(*net.TCPConn); ok {
			_ = tcp.SetLinger(0)
			_ = tcp.Close()
			return
		}
	}
	_ = proxy.Close()
}

// activity is the time at which bytes last moved in either direction, by the
// monotonic clock: the wall clock may be set meanwhile.
type activity struct {
	began time.Time
	last  atomic.Int64 // nanoseconds since began
}

func (a *activity) mark()               { a.last.Store(int64(time.Since(a.began))) }
func (a *activity) idle() time.Duration { return time.Since(a.began) - time.Duration(a.last.Load()) }

// departed watches a client that has ended its half of the connection, and
// reports whether it is gone before its response has ended. Most such clients
// wait for the response; one that was killed must not hold its request upstream.
func departed(client *net.TCPConn, dialled netip.AddrPort, answered <-chan struct{}) bool {
	const first, last = 5 * time.Millisecond, time.Second
	timer := time.NewTimer(first)
	defer timer.Stop()
	for pause := first; ; {
		select {
		case <-answered:
			return false
		case <-timer.C:
		}
		if peer.Gone(client, dialled) {
			return true
		}
		pause = min(2*pause, last)
		timer.Reset(pause)
	}
}

// pump moves bytes from src to dst until src ends. It reports whether dst took
// them all.
func (r *relay) pump(dst, src half, moved *activity) (whole bool) {
	move := copier(dst, src)
	if to, ok := dst.(stream); ok {
		if from, ok := src.(stream); ok {
			var err error
			if move, err = r.pipes.mover(to, from); err != nil {
				return false
			}
		}
	}
	var armed time.Time
	for {
		if now := time.Now(); now.Sub(armed) > r.cfg.Idle/8 {
			armed = now
			_ = src.SetReadDeadline(now.Add(r.cfg.Idle))
			_ = dst.SetWriteDeadline(now.Add(r.cfg.Idle))
		}
		n, srcErr, dstErr := move()
		switch {
		case dstErr != nil:
			return false
		case errors.Is(srcErr, os.ErrDeadlineExceeded) && moved.idle() < r.cfg.Idle:
			armed = time.Time{} // the other direction is alive
		case srcErr != nil || n == 0:
			_ = dst.CloseWrite()
			return true
		default:
			moved.mark()
		}
	}
}

// mover returns a function that moves what src has to dst inside the kernel.
func (ps *pipes) mover(dst, src stream) (func() (n int, srcErr, dstErr error), error) {
	from, err := src.SyscallConn()
	if err != nil {
		return nil, err
	}
	to, err := dst.SyscallConn()
	if err != nil {
		return nil, err
	}
	return func() (int, error, error) { return ps.move(to, from) }, nil
}

// record is the most that TLS has in one record.
const record = 16 << 10

// copier returns a function that copies what src has to dst.
func copier(dst, src half) func() (n int, srcErr, dstErr error) {
	var buf []byte
	return func() (n int, srcErr, dstErr error) {
		if buf == nil {
			buf = make([]byte, record)
		}
		n, srcErr = src.Read(buf)
		if n > 0 {
			_, dstErr = dst.Write(buf[:n])
			return n, nil, dstErr // an error comes again
		}
		if errors.Is(srcErr, io.EOF) {
			srcErr = nil
		}
		return 0, srcErr, dstErr
	}
}

const (
	maxChunk     = 256 << 10 // bytes moved at once
	maxIdlePipes = 64
)

// pipe carries bytes between two sockets inside the kernel.
type pipe struct{ r, w int }

// pipes keeps empty pipes for the next connection that has bytes to move. A
// connection on which nothing moves holds none.
type pipes struct {
	mu   sync.Mutex
	free []pipe
}

func (ps *pipes) get() (pipe, error) {
	ps.mu.Lock()
	if n := len(ps.free); n > 0 {
		p := ps.free[n-1]
		ps.free = ps.free[:n-1]
		ps.mu.Unlock()
		return p, nil
	}
	ps.mu.Unlock()
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC|unix.O_NONBLOCK); err != nil {
		return pipe{}, os.NewSyscallError("pipe2", err)
	}
	// More room makes fewer calls; the kernel may refuse it.
	_, _ = unix.FcntlInt(uintptr(fds[0]), unix.F_SETPIPE_SZ, maxChunk)
	return pipe{fds[0], fds[1]}, nil
}

// put returns a pipe, which must be empty.
func (ps *pipes) put(p pipe) {
	ps.mu.Lock()
	keep := len(ps.free) < maxIdlePipes
	if keep {
		ps.free = append(ps.free, p)
	}
	ps.mu.Unlock()
	if !keep {
		p.close()
	}
}

func (ps *pipes) close() {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	for _, p := range ps.free {
		p.close()
	}
	ps.free = nil
}

func (p pipe) close() {
	_ = unix.Close(p.r)
	_ = unix.Close(p.w)
}

// move waits until src has bytes and moves them to dst. 0 without an error is
// the end of src. The error of src and that of dst are distinct: after one of
// src, dst may still be written to.
func (ps *pipes) move(dst, src syscall.RawConn) (n int, srcErr, dstErr error) {
	var p pipe
	var err, pipeErr error
	waitErr := src.Read(func(fd uintptr) bool {
		// The pipe is taken only now, when there may be something to carry.
		if p, pipeErr = ps.get(); pipeErr != nil {
			return true
		}
		n, err = spliceChunk(int(fd), p.w, maxChunk)
		if err == nil && n > 0 {
			return true
		}
		ps.put(p)
		return err != unix.EAGAIN
	})
	if pipeErr != nil { // not the source's end: its bytes are lost
		return 0, nil, pipeErr
	}
	if waitErr != nil {
		return 0, waitErr, nil
	}
	if err != nil || n == 0 {
		return 0, err, nil
	}
	for left := n; left > 0; {
		var m int
		waitErr := dst.Write(func(fd uintptr) bool {
			m, err = spliceChunk(p.r, int(fd), left)
			return err != unix.EAGAIN
		})
		if waitErr != nil {
			err = waitErr
		}
		if err != nil {
			p.close() // it still holds bytes
			return 0, nil, err
		}
		left -= m
	}
	ps.put(p)
	return n, nil, nil
}

// spliceChunk moves at most limit bytes from one descriptor to another: splice(2).
func spliceChunk(from, to, limit int) (int, error) {
	for {
		n, err := unix.Splice(from, nil, to, nil, limit, unix.SPLICE_F_NONBLOCK|unix.SPLICE_F_MOVE)
		if err != unix.EINTR {
			return int(n), err
		}
	}
}
