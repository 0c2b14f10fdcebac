// Package peer reports whether the other end of a connection is still there
// after it has ended its outbound half. TCP's FIN is the same for a client that
// has sent its request and waits for the response, and for one that has gone.
// Only the latter's request should be cancelled:
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
// reset, both halves of a unix socket are closed, or, where the peer is in this
// network namespace, no process holds its socket any more. It does not block.
// Call it after a read has returned io.EOF: before that, a peer that has closed
// its socket behind unread data counts as gone.
//
// A remote peer that closes its socket is not known to be gone before something
// is written to it. A connection that is no socket has no halves: its end is the
// end.
//
// dialled is the address that the peer connected to where that is not conn's
// own, because packet rules redirected it; the peer is then taken to be in this
// network namespace. Otherwise it is when its address is loopback.
func Gone(conn net.Conn, dialled netip.AddrPort) bool {
	inner, raw := socket(conn)
	return raw == nil || gone(inner, raw, dialled)
}

// socket is the system's connection below wrappers such as *tls.Conn.
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
