package proxy

import (
	"net"
	"net/netip"
	"slices"

	"github.com/ALRubinger/aileron/internal/hostport"
)

// named reports whether host, the Host field of a request, is a name of the
// listener at which its connection arrived: its own address, on loopback the
// names of loopback too, the session's name, and Door.Names. A web page whose
// own name resolves to this machine cannot send any of them.
func (d Door) named(host string, at net.Addr) bool {
	a, err := hostport.Parse(host, 80)
	switch {
	case err != nil:
		return false
	case a.Host == APIHost, slices.Contains(d.Names, a.String()):
		return true
	}
	local, ok := at.(*net.TCPAddr)
	if !ok || int(a.Port) != local.Port {
		return false
	}
	addr, _ := netip.AddrFromSlice(local.IP)
	addr = addr.Unmap()
	return a.Addr == addr || addr.IsLoopback() && slices.Contains([]string{"localhost", "127.0.0.1", "::1"}, a.Host)
}
