package gateway

import (
	"fmt"
	"net"
	"os"
	"strings"

	"github.com/vishvananda/netlink"
)

// openNetwork brings up loopback and routes every IPv4 address to it. Without
// a route connect() fails before a packet rule sees anything. IPv6 gets none:
// it fails at once, and clients go on with IPv4.
func openNetwork() error {
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

// hasIPv6 reports whether the kernel has IPv6 at all.
func hasIPv6() bool {
	data, err := os.ReadFile("/proc/net/protocols")
	if err != nil {
		return true // if it has not, installing the rules fails
	}
	return strings.Contains(string(data), "\nTCPv6") || strings.Contains(string(data), "\nUDPv6")
}
