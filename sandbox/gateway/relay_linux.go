package gateway

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ALRubinger/aileron/internal/uplink"
)

// connectTimeout bounds the wait for the proxy, and then for its 200.
const connectTimeout = 30 * time.Second

// relay connects clients in the sandbox with the proxy.
type relay struct {
	cfg      Config
	open     func(context.Context, uplink.Kind) (half, error)
	names    *names
	pipes    *pipes
	warnOnce sync.Once // a sandbox must not fill the log
}

// explicit relays a client that is configured for a proxy.
func (r *relay) explicit(ctx context.Context, client *net.TCPConn) {
	proxy, err := r.open(ctx, uplink.Proxy)
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
	if target, ok := r.names.authority(dialled); ok {
		r.tunnel(ctx, client, target, dialled)
	}
}

// named relays a client that has connected to the loopback address of a name.
func (r *relay) named(ctx context.Context, client *net.TCPConn) {
	at, err := netip.ParseAddrPort(client.LocalAddr().String())
	if err != nil {
		return
	}
	if name, ok := r.names.name(at.Addr()); ok {
		r.tunnel(ctx, client, name+":"+strconv.Itoa(int(at.Port())), netip.AddrPort{})
	}
}

// tunnel relays a client that is to reach target. dialled is the address that it connected to, if packet rules changed
// that.
func (r *relay) tunnel(ctx context.Context, client *net.TCPConn, target string, dialled netip.AddrPort) {
	proxy, err := r.open(ctx, uplink.Redirect)
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

// openSocket connects to the proxy's socket for a kind of client.
func (r *relay) openSocket(ctx context.Context, kind uplink.Kind) (half, error) {
	path := r.cfg.Proxy
	if kind == uplink.Redirect {
		path = r.cfg.Redirect
	}
	conn, err := r.dial(ctx, path)
	if err != nil {
		return nil, err // not a nil pointer
	}
	return conn, nil
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

// maxHead bounds the proxy's response to a CONNECT.
const maxHead = 4096

// connect sends the proxy a CONNECT for target. It reports whether the proxy
// accepted it, and returns what followed the head of its response.
func connect(proxy net.Conn, target string) (rest []byte, ok bool) {
	_ = proxy.SetDeadline(time.Now().Add(connectTimeout))
	if _, err := io.WriteString(proxy, "CONNECT "+target+" HTTP/1.1\r\nHost: "+target+"\r\n\r\n"); err != nil {
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
		n, err := proxy.Read(head[len(head):cap(head)])
		head = head[:len(head)+n]
		if end := bytes.Index(head, []byte("\r\n\r\n")); end >= 0 {
			_ = proxy.SetDeadline(time.Time{})
			return head[end+4:], isOK(head[:end])
		}
		if err != nil {
			return nil, false
		}
	}
}

// isOK reports whether a head begins with the status 200.
func isOK(head []byte) bool {
	rest, ok := bytes.CutPrefix(head, []byte("HTTP/1.1 200"))
	return ok && (len(rest) == 0 || rest[0] == ' ' || rest[0] == '\r')
}

// idlePorts is how many connections wait for the host to use them.
const idlePorts = 4

// Answers to the host's request for a port.
const (
	portReached byte = iota
	portRefused
)

// servePorts carries connections from the host to ports of the sandbox until ctx
// ends. The host cannot connect to anything in this namespace. So the gateway
// keeps some connections to the host's socket, and for each of them the host
// sends the number of a port when it has a client for it. Nothing in the sandbox
// reaches the socket or asks for a connection.
func (r *relay) servePorts(ctx context.Context) {
	if _, err := os.Stat(r.cfg.Ports); err != nil {
		return // no port is published
	}
	var running sync.WaitGroup
	defer running.Wait()
	idle := make(chan struct{}, idlePorts)
	for {
		select {
		case idle <- struct{}{}:
		case <-ctx.Done():
			return
		}
		host, err := r.dial(ctx, r.cfg.Ports)
		if err != nil {
			return // the session is over
		}
		running.Go(func() {
			stop := context.AfterFunc(ctx, func() { _ = host.Close() })
			defer stop()
			defer host.Close()
			var port [2]byte
			_, err := io.ReadFull(host, port[:])
			<-idle
			if err == nil {
				r.servePort(ctx, host, binary.BigEndian.Uint16(port[:]))
			}
		})
	}
}

// servePort connects the host with a port of the sandbox.
func (r *relay) servePort(ctx context.Context, host *net.UnixConn, port uint16) {
	conn, err := dialPort(ctx, port)
	if err != nil {
		_, _ = host.Write([]byte{portRefused})
		return
	}
	server := conn.(*net.TCPConn)
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if _, err := host.Write([]byte{portReached}); err != nil {
		_ = server.Close()
		return
	}
	Join(host, server)
}

// dialPort connects to a port of the sandbox. The gateway's own are refused.
func dialPort(ctx context.Context, port uint16) (net.Conn, error) {
	if IsReserved(port) {
		return nil, errors.New("it is the gateway's own port")
	}
	// What listens on localhost has one of its addresses, and with many servers it is the first that a resolver returns.
	d := net.Dialer{Timeout: connectTimeout}
	conn, err := d.DialContext(ctx, "tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(int(port))))
	if errors.Is(err, syscall.ECONNREFUSED) {
		return d.DialContext(ctx, "tcp6", net.JoinHostPort("::1", strconv.Itoa(int(port))))
	}
	return conn, err
}
