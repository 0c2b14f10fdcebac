// Package peer reports whether the peer of a connection still exists after it has
// closed its outbound half. TCP's FIN is the same for a client that has sent its
// request and waits for the response, and for a client that has closed its socket.
// Only the request of the latter should be cancelled, with [Gone]:
//
//	if n, err := conn.Read(buf); err == io.EOF && peer.Gone(conn, netip.AddrPort{}) {
//		cancel()
//	}
package peer

import (
	"net"
	"net/netip"
	"syscall"
)

// Gone reports whether the peer of conn is known to be gone: the connection was
// reset, both halves of a unix socket are closed, or, for a peer in this network
// namespace, no process holds its socket any more. It does not block. Call it after
// a read has returned io.EOF: before that, a peer that has closed its socket after
// unread data counts as gone.
//
// A remote peer that closes its socket is not known to be gone until something is
// written to it. A connection that is not a socket has no halves, so its peer is gone.
//
// dialled is the address that the peer connected to, if packet rules redirected it
// to another one; the peer is then assumed to be in this network namespace.
// Otherwise it is if its address is loopback.
func Gone(conn net.Conn, dialled netip.AddrPort) bool {
	inner, raw := socket(conn)
	return raw == nil || gone(inner, raw, dialled)
}

// socket returns the connection of the system below wrappers such as *tls.Conn.
func socket(conn net.Conn) (net.Conn, syscall.RawConn) {
	for {
		if c, ok := conn.(syscall.Conn); ok {
			raw, err := c.SyscallConn()
			if err != nil {
				return conn, nil
			}
			return conn, raw
		}
		wrapper, ok := conn.(interface{ NetConn() net.Conn })
		if !ok {
			return conn, nil
		}
		conn = wrapper.NetConn()
	}
}
