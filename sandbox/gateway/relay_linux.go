package gateway

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ALRubinger/aileron/internal/peer"
)

const (
	connectTimeout = 30 * time.Second // to reach the plane and to hear its 200
	lingering      = 5 * time.Second  // for a client that still sends what nobody reads
	maxHead        = 4096             // the plane's answer to a CONNECT
)

// relay joins connections of the box with connections to the plane.
type relay struct {
	cfg   Config
	names *names
	pipes *pipes
	lost  sync.Once // said once: a box must not fill the log
}

// explicit relays a client that speaks to a proxy.
func (r *relay) explicit(ctx context.Context, client *net.TCPConn) {
	plane, err := r.dial(ctx, r.cfg.Proxy)
	if err != nil {
		return
	}
	dialled, _ := client.LocalAddr().(*net.TCPAddr)
	r.join(ctx, client, plane, dialled.AddrPort())
}

// redirected relays a client that believes it speaks to its server.
func (r *relay) redirected(ctx context.Context, client *net.TCPConn) {
	dialled, err := originalDestination(client)
	if err != nil {
		return
	}
	target, ok := r.names.authority(dialled)
	if !ok {
		return
	}
	plane, err := r.dial(ctx, r.cfg.Redirect)
	if err != nil {
		return
	}
	stop := context.AfterFunc(ctx, func() { _ = plane.Close() })
	rest, ok := connect(plane, target)
	stop()
	if ok && len(rest) > 0 { // a server that speaks first
		_, err := client.Write(rest)
		ok = err == nil
	}
	if !ok {
		_ = plane.Close()
		return
	}
	r.join(ctx, client, plane, dialled)
}

// authority is the name to which an address was given, else the address
// itself, with the port. A client that dialled the redirect's own port is not
// redirected, and has none.
func (n *names) authority(to netip.AddrPort) (string, bool) {
	if to.Addr().IsLoopback() || to.Port() == 0 {
		return "", false
	}
	if name, ok := n.name(to.Addr()); ok {
		return name + ":" + strconv.Itoa(int(to.Port())), true
	}
	return to.String(), true
}

// originalDestination is where the client's first packet went to before the
// packet rules changed it.
func originalDestination(client *net.TCPConn) (netip.AddrPort, error) {
	raw, err := client.SyscallConn()
	if err != nil {
		return netip.AddrPort{}, err
	}
	var name *unix.IPv6Mreq // 16 bytes first: a struct sockaddr_in fits
	var optErr error
	err = raw.Control(func(fd uintptr) {
		name, optErr = unix.GetsockoptIPv6Mreq(int(fd), unix.IPPROTO_IP, unix.SO_ORIGINAL_DST)
	})
	if err = errors.Join(err, optErr); err != nil {
		return netip.AddrPort{}, err
	}
	return fromSockaddr(name.Multiaddr), nil
}

// fromSockaddr reads a struct sockaddr_in of ip(7).
func fromSockaddr(b [16]byte) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte(b[4:8])), uint16(b[2])<<8|uint16(b[3]))
}

// dial connects to a socket of the plane. A plane that is behind with
// accepting makes connect(2) fail with EAGAIN instead of waiting (unix(7)).
func (r *relay) dial(ctx context.Context, path string) (*net.UnixConn, error) {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	var d net.Dialer
	for {
		conn, err := d.DialContext(ctx, "unix", path)
		if err == nil {
			return conn.(*net.UnixConn), nil
		}
		if !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.EMFILE) {
			r.lost.Do(func() { r.cfg.Log.Warn("the plane cannot be reached", "error", err) })
			return nil, err
		}
		if wait(ctx, 5*time.Millisecond) != nil {
			return nil, err
		}
	}
}

// connect asks the plane for target and gives what came after its answer's
// head; ok only for a 200.
func connect(plane net.Conn, target string) (rest []byte, ok bool) {
	_ = plane.SetDeadline(time.Now().Add(connectTimeout))
	if _, err := io.WriteString(plane, "CONNECT "+target+" HTTP/1.1\r\nHost: "+target+"\r\n\r\n"); err != nil {
		return nil, false
	}
	head := make([]byte, 0, 512)
	for {
		if len(head) == cap(head) {
			if len(head) >= maxHead {
				return nil, false
			}
			head = append(make([]byte, 0, 2*cap(head)), head...)
		}
		n, err := plane.Read(head[len(head):cap(head)])
		head = head[:len(head)+n]
		if end := bytes.Index(head, []byte("\r\n\r\n")); end >= 0 {
			_ = plane.SetDeadline(time.Time{})
			return head[end+4:], isOK(head[:end])
		}
		if err != nil {
			return nil, false
		}
	}
}

// isOK reports a status line that says 200.
func isOK(head []byte) bool {
	rest, ok := bytes.CutPrefix(head, []byte("HTTP/1.1 200"))
	return ok && (len(rest) == 0 || rest[0] == ' ' || rest[0] == '\r')
}

// stream is what both kinds of connection have in common.
type stream interface {
	net.Conn
	syscall.Conn
	CloseWrite() error
}

// join moves bytes both ways until both directions have ended, passing on each
// end when it comes: a half-close as a half-close, and a client that is gone as
// the end of the connection. dialled is where the client connected to. It closes
// both connections.
func (r *relay) join(ctx context.Context, client *net.TCPConn, plane *net.UnixConn, dialled netip.AddrPort) {
	stop := context.AfterFunc(ctx, func() { _ = plane.Close() }) // the client's is closed by accept
	defer stop()
	defer plane.Close()
	moved := &activity{began: time.Now()}
	answered := make(chan struct{}) // the other direction has ended
	var up sync.WaitGroup
	up.Go(func() {
		if r.pump(plane, client, moved) {
			if departed(client, dialled, answered) {
				_ = plane.Close()
			}
			return
		}
		// The plane takes no more, yet its last words may be on their way:
		// closing now would reset the connection under them.
		_ = client.SetReadDeadline(time.Now().Add(lingering))
		_, _ = io.Copy(io.Discard, client)
	})
	if !r.pump(client, plane, moved) { // nobody hears the answer
		_ = client.Close()
		_ = plane.Close()
	}
	close(answered)
	up.Wait()
}

// activity is when bytes last moved in either direction, by the monotonic
// clock: the wall clock may be set meanwhile.
type activity struct {
	began time.Time
	last  atomic.Int64 // nanoseconds since began
}

func (a *activity) mark()               { a.last.Store(int64(time.Since(a.began))) }
func (a *activity) idle() time.Duration { return time.Since(a.began) - time.Duration(a.last.Load()) }

// departed looks for a client that has ended its outbound half until its answer
// has ended, and reports whether it is gone before. Such a client most often
// waits; one that was killed must not hold its request upstream.
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

// pump moves bytes from src to dst until src ends; whole is false when dst did
// not take them all.
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
