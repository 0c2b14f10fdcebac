package harness

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"os"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// Packets sees what anyone in the namespace sends, whether anything listens
// there or not: of a TCP connection the first packet, of IPv6's own
// housekeeping nothing.
type Packets struct{ fd int }

// Packet is one of them.
type Packet struct {
	Network  string // tcp, udp, or "protocol N", which has no ports
	From, To netip.AddrPort
}

// String is where the packet went.
func (p Packet) String() string {
	if p.Dial() {
		return p.Network + " " + p.To.String()
	}
	return p.Network + " " + p.To.Addr().String()
}

// Dial reports a connection that was begun, or a datagram.
func (p Packet) Dial() bool { return p.Network == "tcp" || p.Network == "udp" }

// WatchPackets watches until it is closed.
func WatchPackets() (*Packets, error) {
	const all = 0x0300 // ETH_P_ALL in network order
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, all)
	if err != nil {
		return nil, fmt.Errorf("watch the packets: %w", err)
	}
	_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 64<<20)
	if err := skipStreams(fd); err != nil {
		return nil, fmt.Errorf("watch the packets: %w", err)
	}
	return &Packets{fd}, nil
}

// skipStreams keeps in the kernel what would only fill the socket's buffer: of
// IPv4's TCP all but the first packet of a connection.
func skipStreams(fd int) error {
	raw, err := bpf.Assemble([]bpf.Instruction{
		bpf.LoadAbsolute{Off: 0, Size: 1},
		bpf.ALUOpConstant{Op: bpf.ALUOpShiftRight, Val: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: 6, SkipTrue: 7},
		bpf.LoadAbsolute{Off: 9, Size: 1},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.IPPROTO_TCP, SkipFalse: 5},
		bpf.LoadMemShift{Off: 0},
		bpf.LoadIndirect{Off: 13, Size: 1},
		bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: 0x12},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: 0x02, SkipTrue: 1},
		bpf.RetConstant{Val: 0},
		bpf.RetConstant{Val: 128},
	})
	if err != nil {
		return err
	}
	filter := make([]unix.SockFilter, len(raw))
	for i, r := range raw {
		filter[i] = unix.SockFilter{Code: r.Op, Jt: r.Jt, Jf: r.Jf, K: r.K}
	}
	return unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER,
		&unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]})
}

// Close ends the watch.
func (w *Packets) Close() error { return unix.Close(w.fd) }

// Take returns the packets since the last time. The kernel queued each before
// its sender went on, so that none is late.
func (w *Packets) Take() ([]Packet, error) {
	var all []Packet
	buf := make([]byte, 256)
	for {
		n, from, err := unix.Recvfrom(w.fd, buf, 0)
		if err == unix.EAGAIN {
			return all, nil
		}
		if err != nil {
			return all, os.NewSyscallError("recvfrom", err)
		}
		if at, ok := from.(*unix.SockaddrLinklayer); !ok || at.Pkttype != unix.PACKET_OUTGOING {
			continue // loopback shows each packet twice
		}
		if p, ok := readPacket(buf[:n]); ok {
			all = append(all, p)
		}
	}
}

// readPacket reads the heads of an IP packet and of what it carries.
func readPacket(raw []byte) (p Packet, ok bool) {
	var protocol byte
	var src, dst netip.Addr
	var rest []byte
	switch {
	case len(raw) >= 40 && raw[0]>>4 == 6:
		protocol, rest = raw[6], raw[40:]
		src, dst = netip.AddrFrom16([16]byte(raw[8:24])), netip.AddrFrom16([16]byte(raw[24:40]))
		if protocol == unix.IPPROTO_ICMPV6 || protocol == unix.IPPROTO_HOPOPTS {
			return p, false // IPv6's own housekeeping
		}
	case len(raw) >= 20 && raw[0]>>4 == 4:
		protocol, rest = raw[9], raw[min(int(raw[0]&0xf)*4, len(raw)):]
		src, dst = netip.AddrFrom4([4]byte(raw[12:16])), netip.AddrFrom4([4]byte(raw[16:20]))
	default:
		return p, false
	}
	var from, to uint16
	switch {
	case protocol == unix.IPPROTO_TCP && len(rest) >= 14:
		if rest[13]&0x12 != 0x02 {
			return p, false // not the first of a connection
		}
		p.Network = "tcp"
	case protocol == unix.IPPROTO_UDP && len(rest) >= 4:
		p.Network = "udp"
	default:
		p.Network = fmt.Sprintf("protocol %d", protocol)
	}
	if p.Dial() {
		from, to = binary.BigEndian.Uint16(rest), binary.BigEndian.Uint16(rest[2:])
	}
	p.From, p.To = netip.AddrPortFrom(src, from), netip.AddrPortFrom(dst, to)
	return p, true
}
