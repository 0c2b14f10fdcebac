//go:build !linux

package peer

import (
	"net"
	"net/netip"
	"syscall"
)

// gone knows nothing here: a peer is there until a write to it fails.
func gone(net.Conn, syscall.RawConn, netip.AddrPort) bool { return false }
