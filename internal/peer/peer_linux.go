package peer

import (
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"syscall"

	"golang.org/x/sys/unix"
)

func gone(conn net.Conn, raw syscall.RawConn, dialled netip.AddrPort) bool {
	hungUp := true // a closed connection has no peer
	_ = raw.Control(func(fd uintptr) {
		fds := []unix.PollFd{{Fd: int32(fd)}} //nolint:gosec // a file descriptor
		_, err := unix.Poll(fds, 0)           // POLLERR and POLLHUP are always reported
		hungUp = err == nil && fds[0].Revents&(unix.POLLERR|unix.POLLHUP) != 0
	})
	return hungUp || orphaned(conn, dialled)
}

// orphaned reports whether it is known that no process holds the peer's socket. This
// can be known of a peer in this network namespace only.
func orphaned(conn net.Conn, dialled netip.AddrPort) bool {
	local, ok := addrPort(conn.LocalAddr())
	remote, there := addrPort(conn.RemoteAddr())
	if !ok || !there || !dialled.IsValid() && !remote.Addr().IsLoopback() {
		return false
	}
	to := local
	if dialled.IsValid() {
		to = dialled
	}
	held, err := socketHeld(remote, to)
	if errors.Is(err, unix.ENOENT) {
		// There is no such socket, if the kernel knows at least this end.
		_, err = socketHeld(local, remote)
	}
	return err == nil && !held
}

func addrPort(a net.Addr) (netip.AddrPort, bool) {
	tcp, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.AddrPort{}, false
	}
	at := tcp.AddrPort()
	return netip.AddrPortFrom(at.Addr().Unmap(), at.Port()), true
}

// socketHeld asks the kernel (sock_diag(7)) for the TCP socket from one address
// to another, and reports whether a process holds it: one that was closed while
// its connection winds down has no inode.
func socketHeld(from, to netip.AddrPort) (bool, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.NETLINK_SOCK_DIAG)
	if err != nil {
		return false, err
	}
	defer func() { _ = unix.Close(fd) }()
	if err := unix.Sendto(fd, diagRequest(from, to), 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return false, err
	}
	response := make([]byte, 4096)
	n, _, err := unix.Recvfrom(fd, response, 0)
	if err != nil {
		return false, err
	}
	return diagInode(response[:n])
}

var errDiag = errors.New("look up a socket: the response of the kernel cannot be read")

// diagInode reports whether a response has an inode. It is a struct nlmsghdr, then a
// struct nlmsgerr or a struct inet_diag_msg.
func diagInode(msg []byte) (held bool, err error) {
	const header, inodeAt = 16, 68
	if len(msg) < header+4 {
		return false, errDiag
	}
	switch binary.NativeEndian.Uint16(msg[4:]) {
	case unix.NLMSG_ERROR:
		return false, unix.Errno(-int32(binary.NativeEndian.Uint32(msg[header:]))) //nolint:gosec // a negated errno
	case unix.SOCK_DIAG_BY_FAMILY:
		if len(msg) < header+inodeAt+4 {
			return false, errDiag
		}
		return binary.NativeEndian.Uint32(msg[header+inodeAt:]) != 0, nil
	}
	return false, errDiag
}

// diagRequest returns a struct nlmsghdr and a struct inet_diag_req_v2.
func diagRequest(from, to netip.AddrPort) []byte {
	const length = 16 + 56
	b := make([]byte, length)
	binary.NativeEndian.PutUint32(b, length)
	binary.NativeEndian.PutUint16(b[4:], unix.SOCK_DIAG_BY_FAMILY)
	binary.NativeEndian.PutUint16(b[6:], unix.NLM_F_REQUEST)
	req := b[16:]
	req[0], req[1] = unix.AF_INET, unix.IPPROTO_TCP
	if from.Addr().Is6() {
		req[0] = unix.AF_INET6
	}
	binary.NativeEndian.PutUint32(req[4:], ^uint32(0)) // in any state
	id := req[8:]
	binary.BigEndian.PutUint16(id, from.Port())
	binary.BigEndian.PutUint16(id[2:], to.Port())
	copy(id[4:20], from.Addr().AsSlice())
	copy(id[20:36], to.Addr().AsSlice())
	copy(id[40:48], "\xff\xff\xff\xff\xff\xff\xff\xff") // INET_DIAG_NOCOOKIE
	return b
}
