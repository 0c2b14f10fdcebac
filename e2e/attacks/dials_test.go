package attacks

import (
	"encoding/binary"
	"fmt"
	"net/netip"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// dialWatch sees every connection that anyone in the namespace attempts, and
// every datagram, whether somebody listens there or not.
type dialWatch struct{ fd int }

// dial is one attempt.
type dial struct {
	network string // tcp or udp
	to      netip.AddrPort
	from    netip.AddrPort
}

func (d dial) String() string { return fmt.Sprintf("%s %s", d.network, d.to) }

func watchDials() (*dialWatch, error) {
	const all = 0x0300 // ETH_P_ALL in network order
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, all)
	if err != nil {
		return nil, fmt.Errorf("watch the dials: %w", err)
	}
	// What is passed up: IPv6; UDP; of TCP, the first packet of a connection.
	raw, err := bpf.Assemble([]bpf.Instruction{
		bpf.LoadAbsolute{Off: 0, Size: 1},
		bpf.ALUOpConstant{Op: bpf.ALUOpShiftRight, Val: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: 6, SkipTrue: 8},
		bpf.LoadAbsolute{Off: 9, Size: 1},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.IPPROTO_UDP, SkipTrue: 6},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.IPPROTO_TCP, SkipFalse: 4},
		bpf.LoadMemShift{Off: 0},
		bpf.LoadIndirect{Off: 13, Size: 1},
		bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: 0x12},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: 0x02, SkipTrue: 1},
		bpf.RetConstant{Val: 0},
		bpf.RetConstant{Val: 128},
	})
	if err != nil {
		return nil, err
	}
	filter := make([]unix.SockFilter, len(raw))
	for i, r := range raw {
		filter[i] = unix.SockFilter{Code: r.Op, Jt: r.Jt, Jf: r.Jf, K: r.K}
	}
	if err := unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}); err != nil {
		return nil, fmt.Errorf("watch the dials: %w", err)
	}
	_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 64<<20)
	return &dialWatch{fd: fd}, nil
}

// take gives the attempts since the last time. The kernel queued each before
// its sender went on, so that none is late.
func (w *dialWatch) take() []dial {
	var all []dial
	buf := make([]byte, 256)
	for {
		n, from, err := unix.Recvfrom(w.fd, buf, 0)
		if err != nil {
			return all
		}
		if at, ok := from.(*unix.SockaddrLinklayer); !ok || at.Pkttype != unix.PACKET_OUTGOING {
			continue // loopback shows each packet twice
		}
		if d, ok := readDial(buf[:n]); ok {
			all = append(all, d)
		}
	}
}

func readDial(p []byte) (dial, bool) {
	if len(p) < 20 {
		return dial{}, false
	}
	var d dial
	var src, dst netip.Addr
	protocol, rest := p[9], p
	if p[0]>>4 == 6 {
		if len(p) < 44 {
			return dial{}, false
		}
		protocol, rest = p[6], p[40:]
		src, dst = netip.AddrFrom16([16]byte(p[8:24])), netip.AddrFrom16([16]byte(p[24:40]))
	} else {
		src, dst = netip.AddrFrom4([4]byte(p[12:16])), netip.AddrFrom4([4]byte(p[16:20]))
		rest = p[int(p[0]&0xf)*4:]
	}
	if len(rest) < 8 {
		return dial{}, false
	}
	switch protocol {
	case unix.IPPROTO_TCP:
		if len(rest) < 14 || rest[13]&0x12 != 0x02 {
			return dial{}, false
		}
		d.network = "tcp"
	case unix.IPPROTO_UDP:
		d.network = "udp"
	default:
		return dial{}, false // ICMPv6 and its like
	}
	d.from = netip.AddrPortFrom(src, binary.BigEndian.Uint16(rest))
	d.to = netip.AddrPortFrom(dst, binary.BigEndian.Uint16(rest[2:]))
	return d, true
}
