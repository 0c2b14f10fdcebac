//go:build !linux

package peer

import (
	"net"
	"net/netip"
	"syscall"
)

// gone returns false: on this system a peer counts as existing until a write fails.
func gone(net.Conn, syscall.RawConn, netip.AddrPort) bool { return false }
