package gateway

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/ALRubinger/aileron/internal/hint"
)

// openNetwork brings up loopback and routes every IPv4 address to it. Without
// a route connect() fails before a packet rule sees anything. IPv6 gets none:
// it fails at once, and clients go on with IPv4. The network of a Pod is used as it is.
func (c Config) openNetwork() error {
	if c.Pod {
		return checkPod()
	}
	if err := checkSealed(); err != nil {
		return err
	}
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		return fmt.Errorf("find the loopback device: %w", err)
	}
	if err := netlink.LinkSetUp(lo); err != nil {
		return fmt.Errorf("bring up the loopback device: %w", err)
	}
	src := net.ParseIP(source).To4()
	addr := &netlink.Addr{IPNet: &net.IPNet{IP: src, Mask: net.CIDRMask(32, 32)}}
	if err := netlink.AddrReplace(lo, addr); err != nil {
		return fmt.Errorf("add the source address: %w", err)
	}
	route := &netlink.Route{
		LinkIndex: lo.Attrs().Index,
		Scope:     netlink.SCOPE_LINK,
		Dst:       &net.IPNet{IP: net.IPv4zero.To4(), Mask: net.CIDRMask(0, 32)},
		Src:       src,
	}
	if err := netlink.RouteReplace(route); err != nil {
		return fmt.Errorf("add the default route: %w", err)
	}
	return nil
}

// checkSealed refuses a namespace that has a way out. The host's own above all
// must never get these packet rules.
func checkSealed() error {
	links, err := netlink.LinkList()
	if err != nil {
		return fmt.Errorf("list the network devices: %w", err)
	}
	for _, l := range links {
		// Tunnel modules leave a dead device of their own in every namespace
		// (net.core.fb_tunnels_only_for_init_net); down, it carries nothing,
		// and bringing it up takes a capability that a sandbox never has.
		a := l.Attrs()
		if a.Flags&net.FlagLoopback == 0 && a.Flags&net.FlagUp != 0 {
			return fmt.Errorf("the network namespace has the device %s; it must have none but loopback", a.Name)
		}
	}
	return nil
}

// hostSetting exists in the first network namespace of a machine alone.
const hostSetting = "/proc/sys/net/core/netdev_budget"

// checkPod refuses the network of a node, which a Pod with hostNetwork has, and one without a route, which no
// connection would get far enough in to be redirected.
func checkPod() error {
	links, err := netlink.LinkList()
	if err != nil {
		return fmt.Errorf("list the network devices: %w", err)
	}
	_, err = os.Stat(hostSetting)
	if err == nil || slices.ContainsFunc(links, func(l netlink.Link) bool { return l.Type() == "bridge" }) {
		return hint.New(errors.New("this is the network of a node, and not that of a Pod"),
			"remove hostNetwork from the Pod: these packet rules would cut the node off")
	}
	routes, err := netlink.RouteList(nil, netlink.FAMILY_V4)
	if err != nil {
		return fmt.Errorf("list the routes: %w", err)
	}
	for _, r := range routes {
		if ones, bits := maskOf(r.Dst); ones == 0 && bits >= 0 {
			return nil
		}
	}
	return hint.New(errors.New("the Pod has no default route for IPv4"),
		"the gateway redirects IPv4 alone; give the cluster's Pods IPv4 addresses")
}

// maskOf returns the length of a route's prefix: a default route may have none at all.
func maskOf(n *net.IPNet) (ones, bits int) {
	if n == nil {
		return 0, 0
	}
	return n.Mask.Size()
}

// hasIPv6 reports whether the kernel has IPv6 at all.
func hasIPv6() bool {
	data, err := os.ReadFile("/proc/net/protocols")
	if err != nil {
		return true // if it has not, installing the rules fails
	}
	return strings.Contains(string(data), "\nTCPv6") || strings.Contains(string(data), "\nUDPv6")
}

// installRules makes every packet of the namespace end at the gateway. In the
// language of nft(8):
//
//	table ip aileron {
//	  chain redirect { type nat hook output priority -100;
//	    udp dport 53 redirect to :15353
//	    tcp dport 53 redirect to :15353
//	    ip daddr 127.0.0.0/8 accept
//	    meta l4proto tcp redirect to :15001
//	  }
//	  chain seal { type filter hook output priority 0; policy drop;
//	    ip daddr 127.0.0.0/8 accept
//	    ip daddr 198.19.255.254 accept
//	    reject with icmp admin-prohibited
//	  }
//	}
//	table ip6 aileron {
//	  chain seal { type filter hook output priority 0; policy drop;
//	    ip6 daddr ::1 accept
//	    reject with icmpv6 admin-prohibited
//	  }
//	}
//
// Every chain sees the packets that leave a process: where there is only
// loopback, there are no others.
//
// In a Pod, where there are other devices, "meta skuid 65533 accept" comes first in each chain, and "oifname lo accept"
// takes the place of the source address: it is what the packets of an answer leave by. A redirected packet still has
// the device of its first route here, and its new address lets it pass.
func (cfg Config) installRules() error {
	c, err := nftables.New()
	if err != nil {
		return fmt.Errorf("open netlink: %w", err)
	}
	cfg.redirectRules(c)
	if hasIPv6() {
		cfg.sealIPv6(c)
	}
	if err := c.Flush(); err != nil {
		return fmt.Errorf("the kernel refused them; it needs nf_tables with nat and redirect: %w", err)
	}
	return nil
}

// addTable adds a table in the place of that of a gateway that was killed, whose rules hold until then.
func addTable(c *nftables.Conn, family nftables.TableFamily) *nftables.Table {
	table := &nftables.Table{Family: family, Name: "aileron"}
	c.AddTable(table) // else there may be none to delete
	c.DelTable(table)
	return c.AddTable(table)
}

func (cfg Config) redirectRules(c *nftables.Conn) {
	table := addTable(c, nftables.TableFamilyIPv4)
	nat := c.AddChain(&nftables.Chain{
		Name: "redirect", Table: table, Type: nftables.ChainTypeNAT,
		Hooknum: nftables.ChainHookOutput, Priority: nftables.ChainPriorityNATDest,
	})
	add := func(chain *nftables.Chain, parts ...[]expr.Any) {
		var exprs []expr.Any
		for _, p := range parts {
			exprs = append(exprs, p...)
		}
		c.AddRule(&nftables.Rule{Table: table, Chain: chain, Exprs: exprs})
	}
	if cfg.Pod {
		add(nat, user(cfg.Plane), accepted())
	}
	add(nat, protocol(unix.IPPROTO_UDP), port(53), redirectTo(dnsAddr))
	add(nat, protocol(unix.IPPROTO_TCP), port(53), redirectTo(dnsAddr))
	add(nat, loopback4(), accepted())
	add(nat, protocol(unix.IPPROTO_TCP), redirectTo(redirectAddr))

	seal := sealChain(c, table)
	if cfg.Pod {
		add(seal, user(cfg.Plane), accepted())
		add(seal, byLoopback(), accepted())
	}
	add(seal, loopback4(), accepted())
	if !cfg.Pod {
		src := netip.MustParseAddr(source).As4()
		add(seal, destination(16, src[:]), accepted())
	}
	add(seal, rejected(unix.NFT_REJECT_ICMP_UNREACH, icmpAdminProhibited))
}

func (cfg Config) sealIPv6(c *nftables.Conn) {
	table := addTable(c, nftables.TableFamilyIPv6)
	seal := sealChain(c, table)
	if cfg.Pod {
		for _, match := range [][]expr.Any{user(cfg.Plane), byLoopback()} {
			c.AddRule(&nftables.Rule{Table: table, Chain: seal, Exprs: append(match, accepted()...)})
		}
	}
	self := netip.IPv6Loopback().As16()
	reject := rejected(unix.NFT_REJECT_ICMP_UNREACH, icmp6AdminProhibited)
	c.AddRule(&nftables.Rule{Table: table, Chain: seal, Exprs: append(destination(24, self[:]), accepted()...)})
	c.AddRule(&nftables.Rule{Table: table, Chain: seal, Exprs: reject})
}

// Codes of "destination unreachable, administratively prohibited": RFC 1812
// section 5.2.7.1 and RFC 4443 section 3.1.
const (
	icmpAdminProhibited  = 13
	icmp6AdminProhibited = 1
)

func sealChain(c *nftables.Conn, table *nftables.Table) *nftables.Chain {
	drop := nftables.ChainPolicyDrop
	return c.AddChain(&nftables.Chain{
		Name: "seal", Table: table, Type: nftables.ChainTypeFilter,
		Hooknum: nftables.ChainHookOutput, Priority: nftables.ChainPriorityFilter, Policy: &drop,
	})
}

func protocol(number byte) []expr.Any {
	return []expr.Any{
		&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: 1},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: []byte{number}},
	}
}

// port matches the destination port, which is at offset 2 of TCP and UDP alike.
func port(n uint16) []expr.Any {
	return []expr.Any{
		&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseTransportHeader, Offset: 2, Len: 2},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: binary.BigEndian.AppendUint16(nil, n)},
	}
}

// destination matches the first bytes of the destination address, which is at
// offset in the network header.
func destination(offset uint32, prefix []byte) []expr.Any {
	return []expr.Any{
		//nolint:gosec // 4 or 16 bytes at most
		&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseNetworkHeader, Offset: offset, Len: uint32(len(prefix))},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: prefix},
	}
}

// user matches packets of the sockets of a user.
func user(id int) []expr.Any {
	return []expr.Any{
		&expr.Meta{Key: expr.MetaKeySKUID, Register: 1},
		//nolint:gosec // a user id
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: binary.NativeEndian.AppendUint32(nil, uint32(id))},
	}
}

// byLoopback matches packets that leave by the loopback device.
func byLoopback() []expr.Any {
	name := make([]byte, unix.IFNAMSIZ)
	copy(name, "lo")
	return []expr.Any{
		&expr.Meta{Key: expr.MetaKeyOIFNAME, Register: 1},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: name},
	}
}

func loopback4() []expr.Any { return destination(16, []byte{127}) }

func accepted() []expr.Any { return []expr.Any{&expr.Verdict{Kind: expr.VerdictAccept}} }

func rejected(kind uint32, code uint8) []expr.Any {
	return []expr.Any{&expr.Reject{Type: kind, Code: code}}
}

func redirectTo(to netip.AddrPort) []expr.Any {
	return []expr.Any{
		&expr.Immediate{Register: 1, Data: binary.BigEndian.AppendUint16(nil, to.Port())},
		&expr.Redir{RegisterProtoMin: 1},
	}
}
