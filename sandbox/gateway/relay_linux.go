package gateway

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// connectTimeout bounds the wait for the proxy, and then for its 200.
const connectTimeout = 30 * time.Second

// relay connects clients in the sandbox with the proxy.
type relay struct {
	cfg      Config
	names    *names
	pipes    *pipes
	warnOnce sync.Once // a sandbox must not fill the log
}

// explicit relays a client that is configured for a proxy.
func (r *relay) explicit(ctx context.Context, client *net.TCPConn) {
	proxy, err := r.dial(ctx, r.cfg.Proxy)
	if err != nil {
		return
	}
	dialled, _ := client.LocalAddr().(*net.TCPAddr)
	r.splice(ctx, client, proxy, dialled.AddrPort())
}

// redirected relays a client that has connected to its server, as it believes.
func (r *relay) redirected(ctx context.Context, client *net.TCPConn) {
	dialled, err := originalDestination(client)
	if err != nil {
		return
	}
	target, ok := r.names.authority(dialled)
	if !ok {
		return
	}
	proxy, err := r.dial(ctx, r.cfg.Redirect)
	if err != nil {
		return
	}
	stop := context.AfterFunc(ctx, func() { _ = proxy.Close() })
	rest, ok := connect(proxy, target)
	stop()
	if ok && len(rest) > 0 { // a server that speaks first
		_, err := client.Write(rest)
		ok = err == nil
	}
	if !ok {
		_ = proxy.Close()
		return
	}
	r.splice(ctx, client, proxy, dialled)
}

// authority returns the name that an address was given to, or else the address
// itself, with the port. A client that dialled the listener's own port was not
// redirected, and has no authority.
func (n *names) authority(to netip.AddrPort) (string, bool) {
	if to.Addr().IsLoopback() || to.Port() == 0 {
		return "", false
	}
	if name, ok := n.name(to.Addr()); ok {
		return name + ":" + strconv.Itoa(int(to.Port())), true
	}
	return to.String(), true
}

// originalDestination returns the address that the client connected to, before
// the packet rules changed it.
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

// fromSockaddr decodes a struct sockaddr_in: ip(7).
func fromSockaddr(b [16]byte) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte(b[4:8])), uint16(b[2])<<8|uint16(b[3]))
}

// dial connects to a socket of the proxy. While the proxy's backlog is full,
// connect(2) fails with EAGAIN instead of waiting: unix(7).
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
			r.warnOnce.Do(func() { r.cfg.Log.Warn("the proxy cannot be reached", "error", err) })
			return nil, err
		}
		if wait(ctx, 5*time.Millisecond) != nil {
			return nil, err
		}
	}
}
