package main

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// open makes a socket; use, where there is one, goes on with it.
func open(name string, family, kind, protocol int, use func(fd int) error) {
	fd, err := unix.Socket(family, kind|unix.SOCK_CLOEXEC, protocol)
	if err == nil {
		_ = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: int64(patience.Seconds())})
		_ = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &unix.Timeval{Sec: int64(patience.Seconds())})
		if use != nil {
			err = use(fd)
		}
		_ = unix.Close(fd)
	}
	tell(name, err)
}

var (
	to4 = &unix.SockaddrInet4{Port: 443, Addr: [4]byte{192, 0, 2, 1}}
	to6 = &unix.SockaddrInet6{Port: 443, Addr: [16]byte{0x20, 1, 0xd, 0xb8, 15: 1}}
)

func sockets() {
	connect := func(to unix.Sockaddr) func(int) error {
		return func(fd int) error { return unix.Connect(fd, to) }
	}
	ping := func(to unix.Sockaddr, message string) func(int) error {
		return func(fd int) error {
			if err := unix.Sendto(fd, []byte(message), 0, to); err != nil {
				return err
			}
			_, _, err := unix.Recvfrom(fd, make([]byte, 512), 0)
			return err
		}
	}
	open("AF_VSOCK stream to the host", unix.AF_VSOCK, unix.SOCK_STREAM, 0, connect(&unix.SockaddrVM{CID: 2, Port: 22}))
	open("AF_VSOCK dgram to the host", unix.AF_VSOCK, unix.SOCK_DGRAM, 0, connect(&unix.SockaddrVM{CID: 2, Port: 22}))
	open("AF_VSOCK to the box's own machine", unix.AF_VSOCK, unix.SOCK_STREAM, 0,
		connect(&unix.SockaddrVM{CID: 1, Port: 22}))
	open("AF_PACKET raw", unix.AF_PACKET, unix.SOCK_RAW, 0x0300, nil)
	open("AF_PACKET dgram", unix.AF_PACKET, unix.SOCK_DGRAM, 0x0300, nil)
	open("AF_ALG", unix.AF_ALG, unix.SOCK_SEQPACKET, 0, nil)
	open("AF_BLUETOOTH", unix.AF_BLUETOOTH, unix.SOCK_RAW, 1, nil)
	open("AF_XDP", unix.AF_XDP, unix.SOCK_RAW, 0, nil)
	open("AF_TIPC", unix.AF_TIPC, unix.SOCK_RDM, 0, nil)
	open("AF_KEY", unix.AF_KEY, unix.SOCK_RAW, 2, nil)
	open("AF_CAN", unix.AF_CAN, unix.SOCK_RAW, 1, nil)
	open("AF_RDS", unix.AF_RDS, unix.SOCK_SEQPACKET, 0, nil)
	open("AF_SMC", unix.AF_SMC, unix.SOCK_STREAM, 0, nil)

	open("raw IPv4", unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_RAW, nil)
	open("raw TCP", unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_TCP, nil)
	open("raw GRE", unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_GRE, nil)
	open("raw IPv6", unix.AF_INET6, unix.SOCK_RAW, unix.IPPROTO_RAW, nil)
	open("ICMP, raw", unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP, ping(to4, "\x08\x00\xf7\xff\x00\x00\x00\x00"))
	open("ICMP, a ping socket", unix.AF_INET, unix.SOCK_DGRAM, unix.IPPROTO_ICMP,
		ping(to4, "\x08\x00\xf7\xff\x00\x00\x00\x00"))
	open("ICMPv6, raw", unix.AF_INET6, unix.SOCK_RAW, unix.IPPROTO_ICMPV6, ping(to6, "\x80\x00\x00\x00\x00\x00\x00\x00"))
	open("ICMPv6, a ping socket", unix.AF_INET6, unix.SOCK_DGRAM, unix.IPPROTO_ICMPV6,
		ping(to6, "\x80\x00\x00\x00\x00\x00\x00\x00"))
	open("SCTP, one to one", unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_SCTP, connect(to4))
	open("SCTP, one to many", unix.AF_INET, unix.SOCK_SEQPACKET, unix.IPPROTO_SCTP, connect(to4))
	open("DCCP", unix.AF_INET, unix.SOCK_DCCP, unix.IPPROTO_DCCP, connect(to4))
	open("UDP-Lite", unix.AF_INET, unix.SOCK_DGRAM, unix.IPPROTO_UDPLITE, ping(to4, "out of the box"))
	open("L2TP", unix.AF_INET, unix.SOCK_DGRAM, 115, connect(to4))
	open("SMC over INET", unix.AF_INET, unix.SOCK_STREAM, 256, connect(to4))
	open("MPTCP, IPv6", unix.AF_INET6, unix.SOCK_STREAM, unix.IPPROTO_MPTCP, connect(to6))
	mptcp()
	fastOpen()
	for _, o := range []struct {
		name          string
		level, option int
	}{{"a packet mark", unix.SOL_SOCKET, unix.SO_MARK}, {"a transparent socket", unix.SOL_IP, unix.IP_TRANSPARENT},
		{"any receive buffer", unix.SOL_SOCKET, unix.SO_RCVBUFFORCE}} {
		open(o.name, unix.AF_INET, unix.SOCK_STREAM, 0,
			func(fd int) error { return unix.SetsockoptInt(fd, o.level, o.option, 1) })
	}

	// And every other family there is, of every kind.
	var made []string
	for family := range 64 {
		if slices.Contains([]int{unix.AF_UNIX, unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK}, family) {
			continue
		}
		for _, kind := range []int{unix.SOCK_STREAM, unix.SOCK_DGRAM, unix.SOCK_RAW, unix.SOCK_RDM, unix.SOCK_SEQPACKET} {
			if fd, err := unix.Socket(family, kind, 0); err == nil {
				_ = unix.Close(fd)
				made = append(made, fmt.Sprint(family, "/", kind))
			}
			if pair, err := unix.Socketpair(family, kind, 0); err == nil {
				_, _ = unix.Close(pair[0]), unix.Close(pair[1])
				made = append(made, fmt.Sprint(family, "/", kind, " pair"))
			}
		}
	}
	said("every other socket family", fmt.Sprint(len(made), " made"), strings.Join(made, " "))
	// And those that programs need.
	for name, family := range map[string]int{"UNIX": unix.AF_UNIX, "INET": unix.AF_INET, "INET6": unix.AF_INET6} {
		open("control: a socket of "+name, family, unix.SOCK_STREAM, 0, nil)
	}
	open("control: a socket of NETLINK", unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_ROUTE, nil)
}

// mptcp is TCP on the wire, so the plane judges it.
func mptcp() {
	over(("MPTCP"), unix.IPPROTO_MPTCP, func(fd int, to *unix.SockaddrInet4, hello string) error {
		if err := unix.Connect(fd, to); err != nil {
			return err
		}
		_, err := unix.Write(fd, []byte(hello))
		return err
	})
}

// fastOpen puts the first bytes into the packet that opens a connection.
func fastOpen() {
	over("TCP fast open", 0, func(fd int, to *unix.SockaddrInet4, hello string) error {
		return unix.Sendto(fd, []byte(hello), unix.MSG_FASTOPEN, to)
	})
}

func over(name string, protocol int, send func(fd int, to *unix.SockaddrInet4, hello string) error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, protocol)
	if err != nil {
		tell(name, err)
		return
	}
	f := os.NewFile(uintptr(fd), name)
	defer f.Close()
	_ = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: int64(patience.Seconds())})
	if err := send(fd, &unix.SockaddrInet4{Port: 80, Addr: [4]byte{192, 0, 2, 3}},
		"GET / HTTP/1.1\r\nHost: 192.0.2.3\r\nConnection: close\r\n\r\n"); err != nil {
		tell(name, err)
		return
	}
	buf, n := make([]byte, 4096), 0
	for n < len(buf) {
		got, err := unix.Read(fd, buf[n:])
		if err != nil && n == 0 {
			tell(name, err)
			return
		}
		if err != nil || got == 0 {
			break
		}
		n += got
	}
	if n < 12 {
		said(name, "closed", "")
		return
	}
	said(name, "HTTP "+string(buf[9:12])+reason(buf[:n]), string(buf[:n]))
}

// message is one netlink message that asks for an acknowledgement.
func message(kind, flags uint16, payload []byte) []byte {
	b := make([]byte, unix.NLMSG_HDRLEN, unix.NLMSG_HDRLEN+len(payload))
	h := (*unix.NlMsghdr)(unsafe.Pointer(&b[0]))
	h.Len, h.Type, h.Flags, h.Seq = uint32(unix.NLMSG_HDRLEN+len(payload)), kind, unix.NLM_F_REQUEST|unix.NLM_F_ACK|flags,
		1
	b = append(b, payload...)
	for len(b)%4 != 0 {
		b = append(b, 0)
	}
	return b
}

func attribute(kind uint16, value []byte) []byte {
	b := make([]byte, 4, 4+len(value)+3)
	*(*uint16)(unsafe.Pointer(&b[0])), *(*uint16)(unsafe.Pointer(&b[2])) = uint16(4+len(value)), kind
	b = append(b, value...)
	for len(b)%4 != 0 {
		b = append(b, 0)
	}
	return b
}

func bytesOf[T any](v T) []byte {
	return slices.Clone(unsafe.Slice((*byte)(unsafe.Pointer(&v)), unsafe.Sizeof(v)))
}

// netlink asks the kernel for what only an administrator gets.
func netlink() {
	const create = unix.NLM_F_CREATE | unix.NLM_F_EXCL
	lo := int32(1)
	addr := func(bits byte) []byte {
		return append(bytesOf(unix.IfAddrmsg{Family: unix.AF_INET, Prefixlen: bits, Index: uint32(lo)}),
			attribute(unix.IFA_LOCAL, []byte{198, 19, 255, 254})...)
	}
	route := append(bytesOf(unix.RtMsg{Family: unix.AF_INET, Table: unix.RT_TABLE_MAIN, Protocol: unix.RTPROT_BOOT,
		Scope: unix.RT_SCOPE_LINK, Type: unix.RTN_UNICAST}), attribute(unix.RTA_OIF, bytesOf(lo))...)
	link := func(kind, name string) []byte {
		b := append(bytesOf(unix.IfInfomsg{}), attribute(unix.IFLA_IFNAME, append([]byte(name), 0))...)
		return append(b, attribute(unix.IFLA_LINKINFO, attribute(unix.IFLA_INFO_KIND, []byte(kind)))...)
	}
	nft := func(kind uint16, table string) []byte {
		batch := bytesOf([4]byte{unix.AF_UNSPEC, 0, 0, unix.NFNL_SUBSYS_NFTABLES})
		var attrs []byte
		if table != "" {
			attrs = attribute(unix.NFTA_TABLE_NAME, append([]byte(table), 0))
		}
		all := message(unix.NFNL_MSG_BATCH_BEGIN, 0, batch)
		all = append(all, message(unix.NFNL_SUBSYS_NFTABLES<<8|kind, 0,
			append(bytesOf([4]byte{unix.AF_INET, 0, 0, 0}), attrs...))...)
		return append(all, message(unix.NFNL_MSG_BATCH_END, 0, batch)...)
	}
	for _, c := range []struct {
		name     string
		protocol int
		message  []byte
	}{
		{"netlink: nft flush ruleset", unix.NETLINK_NETFILTER, nft(unix.NFT_MSG_DELTABLE, "")},
		{"netlink: nft delete table", unix.NETLINK_NETFILTER, nft(unix.NFT_MSG_DELTABLE, "aileron")},
		{"netlink: nft add table", unix.NETLINK_NETFILTER, nft(unix.NFT_MSG_NEWTABLE, "mine")},
		{"netlink: nft list tables", unix.NETLINK_NETFILTER,
			message(unix.NFNL_SUBSYS_NFTABLES<<8|unix.NFT_MSG_GETTABLE, unix.NLM_F_DUMP, bytesOf([4]byte{}))},
		{"netlink: flush conntrack", unix.NETLINK_NETFILTER, message(1<<8|2, 0, bytesOf([4]byte{unix.AF_INET, 0, 0, 0}))},
		{"netlink: ip link add dummy", unix.NETLINK_ROUTE, message(unix.RTM_NEWLINK, create, link("dummy", "probe0"))},
		{"netlink: ip link add veth", unix.NETLINK_ROUTE, message(unix.RTM_NEWLINK, create, link("veth", "probe1"))},
		{"netlink: ip link set lo down", unix.NETLINK_ROUTE,
			message(unix.RTM_NEWLINK, 0, bytesOf(unix.IfInfomsg{Index: lo, Change: unix.IFF_UP}))},
		{"netlink: ip route add", unix.NETLINK_ROUTE,
			message(unix.RTM_NEWROUTE, unix.NLM_F_CREATE,
				append(slices.Clone(route), attribute(unix.RTA_PRIORITY, bytesOf(uint32(7)))...))},
		{"netlink: ip route del default", unix.NETLINK_ROUTE, message(unix.RTM_DELROUTE, 0, route)},
		{"netlink: ip addr add", unix.NETLINK_ROUTE, message(unix.RTM_NEWADDR, create, addr(24))},
		{"netlink: ip addr del", unix.NETLINK_ROUTE, message(unix.RTM_DELADDR, 0, addr(32))},
		{"netlink: ip rule add", unix.NETLINK_ROUTE,
			message(unix.RTM_NEWRULE, create,
				bytesOf(unix.RtMsg{Family: unix.AF_INET, Table: unix.RT_TABLE_MAIN, Type: unix.RTN_UNICAST}))},
		{"netlink: ip neigh add", unix.NETLINK_ROUTE,
			message(unix.RTM_NEWNEIGH, create, bytesOf([12]byte{unix.AF_INET, 4: 1, 8: 0x80}))},
		{"netlink: flush xfrm", unix.NETLINK_XFRM, message(0x1c, 0, []byte{0})},
		{"netlink: audit", unix.NETLINK_AUDIT, message(1000, 0, nil)},
	} {
		open(c.name, unix.AF_NETLINK, unix.SOCK_RAW, c.protocol, func(fd int) error {
			if err := unix.Sendto(fd, c.message, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
				return err
			}
			buf := make([]byte, 8192)
			n, _, err := unix.Recvfrom(fd, buf, 0)
			if err != nil {
				return err
			}
			if n < 20 {
				return unix.EBADMSG
			}
			if h := (*unix.NlMsghdr)(unsafe.Pointer(&buf[0])); h.Type != unix.NLMSG_ERROR {
				return nil
			}
			if code := *(*int32)(unsafe.Pointer(&buf[16])); code != 0 {
				return unix.Errno(-code)
			}
			return nil
		})
	}
}

// unixSockets looks for the sockets of others: of the host, of the session,
// of engines.
func unixSockets(p plan) {
	dial := func(name, address string) {
		conn, err := net.DialTimeout("unix", address, patience)
		if err == nil {
			_ = conn.Close()
		}
		tell(name, err)
	}
	dial("an abstract socket of the host", "@"+p.Abstract)
	home, _ := os.UserHomeDir()
	for _, path := range []string{
		"/run/aileron/proxy.sock", "/run/aileron/redirect.sock", "/run/aileron/control.sock", filepath.Join(home, ".aileron"),
		"/var/run/docker.sock", "/run/docker.sock", "/run/podman/podman.sock", "/run/containerd/containerd.sock",
		"/run/crio/crio.sock",
		"/run/user/0/podman/podman.sock", "/run/user/1000/podman/podman.sock", "/run/user/1000/bus",
		"/run/dbus/system_bus_socket", "/run/systemd/private", "/run/systemd/notify",
		"/run/systemd/journal/socket", "/dev/log", "/tmp/.X11-unix/X0", "/run/host-services/ssh-auth.sock",
	} {
		dial("the socket "+path, path)
	}
	for _, name := range []string{"SSH_AUTH_SOCK", "DBUS_SESSION_BUS_ADDRESS", "DOCKER_HOST", "CONTAINER_HOST",
		"XDG_RUNTIME_DIR", "WAYLAND_DISPLAY", "DISPLAY"} {
		said("the variable "+name, fmt.Sprintf("%q", os.Getenv(name)), "")
	}
}
