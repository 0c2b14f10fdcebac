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

	"github.com/ALRubinger/aileron/internal/peer"
)

// lingerTimeout bounds how long a client may go on sending what is not read.
const lingerTimeout = 5 * time.Second

// stream is a TCP connection or one of a unix socket.
type stream interface {
	net.Conn
	syscall.Conn
	CloseWrite() error
}

// splice moves bytes both ways until both directions have ended, and closes both
// connections. Each end is passed on when it comes: a half-close as a half-close,
// and the end of a client that is gone as the end of the connection. dialled is
// the address that the client connected to.
func (r *relay) splice(ctx context.Context, client *net.TCPConn, proxy *net.UnixConn, dialled netip.AddrPort) {
	stop := context.AfterFunc(ctx, func() { _ = proxy.Close() }) // the client's is closed by accept
	defer stop()
	defer proxy.Close()
	moved := &activity{began: time.Now()}
	answered := make(chan struct{}) // closed when the response has ended
	var up sync.WaitGroup
	up.Go(func() {
		if r.pump(proxy, client, moved) {
			if departed(client, dialled, answered) {
				_ = proxy.Close()
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
		_ = proxy.Close()
	}
	close(answered)
	up.Wait()
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
func (r *relay) pump(dst, src stream, moved *activity) (whole bool) {
	from, err := src.SyscallConn()
	if err != nil {
		return true
	}
	to, err := dst.SyscallConn()
	if err != nil {
		return false
	}
	var armed time.Time
	for {
		if now := time.Now(); now.Sub(armed) > r.cfg.Idle/8 {
			armed = now
			_ = src.SetReadDeadline(now.Add(r.cfg.Idle))
			_ = dst.SetWriteDeadline(now.Add(r.cfg.Idle))
		}
		n, srcErr, dstErr := r.pipes.move(to, from)
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
