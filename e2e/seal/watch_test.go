package seal

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"testing"

	"golang.org/x/sys/unix"
)

// watch sees every packet that anyone in the namespace sends.
type watch struct{ fd int }

func watchAll(t *testing.T) *watch {
	t.Helper()
	const all = 0x0300 // ETH_P_ALL in network order
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, all)
	if err != nil {
		t.Fatalf("watch the network: %v", err)
	}
	t.Cleanup(func() { _ = unix.Close(fd) })
	_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 64<<20)
	return &watch{fd}
}

// take gives where packets went since the last time, but for answers of TCP
// and what IPv6 says to itself.
func (w *watch) take(t *testing.T) map[string]int {
	t.Helper()
	sent := map[string]int{}
	buf := make([]byte, 256)
	for {
		n, from, err := unix.Recvfrom(w.fd, buf, 0)
		if err == unix.EAGAIN {
			return sent
		}
		if err != nil {
			t.Fatalf("watch the network: %v", err)
		}
		if at, ok := from.(*unix.SockaddrLinklayer); !ok || at.Pkttype != unix.PACKET_OUTGOING {
			continue // loopback shows each packet twice
		}
		if to := destination(buf[:n]); to != "" {
			sent[to]++
		}
	}
}

func destination(p []byte) string {
	if len(p) < 20 {
		return ""
	}
	protocol, rest := p[9], p[min(int(p[0]&0xf)*4, len(p)):]
	dst := netip.AddrFrom4([4]byte(p[16:20]))
	if p[0]>>4 == 6 {
		if len(p) < 40 {
			return ""
		}
		protocol, rest, dst = p[6], p[40:], netip.AddrFrom16([16]byte(p[24:40]))
	}
	switch {
	case protocol == unix.IPPROTO_ICMPV6 || protocol == 0 && dst.Is6():
		return ""
	case protocol == unix.IPPROTO_TCP && len(rest) >= 14:
		if rest[13]&0x12 != 0x02 {
			return "" // not the first of a connection
		}
		return fmt.Sprintf("tcp %s", netip.AddrPortFrom(dst, binary.BigEndian.Uint16(rest[2:])))
	case protocol == unix.IPPROTO_UDP && len(rest) >= 4:
		return fmt.Sprintf("udp %s", netip.AddrPortFrom(dst, binary.BigEndian.Uint16(rest[2:])))
	}
	return fmt.Sprintf("protocol %d %s", protocol, dst)
}
