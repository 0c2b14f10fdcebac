package engine

import (
	"context"
	"net"
	"net/netip"

	"github.com/docker/docker/api/types/network"
)

// HostAlias is the name by which a container with the engine's own network
// finds the engine's host, when Config.HostAlias is set.
func (e *Engine) HostAlias() string { return e.dialect.hostAlias() }

// BridgeAddresses are the addresses that the engine's bridge may have on this
// host: its gateway, and what its device has, because Docker leaves out a
// gateway that it chose itself. There are none where the engine does not report
// its bridge.
func (e *Engine) BridgeAddresses(ctx context.Context) []netip.Addr {
	bridge, err := e.cli.NetworkInspect(ctx, e.dialect.bridge(), network.InspectOptions{})
	if err != nil {
		return nil
	}
	var found []netip.Addr
	for _, c := range bridge.IPAM.Config {
		if addr, err := netip.ParseAddr(c.Gateway); err == nil {
			found = append(found, addr)
		}
	}
	device, err := net.InterfaceByName(bridge.Options["com.docker.network.bridge.name"])
	if err != nil {
		return found
	}
	addrs, err := device.Addrs()
	if err != nil {
		return found
	}
	for _, a := range addrs {
		if prefix, err := netip.ParsePrefix(a.String()); err == nil && prefix.Addr().Is4() {
			found = append(found, prefix.Addr())
		}
	}
	return found
}
