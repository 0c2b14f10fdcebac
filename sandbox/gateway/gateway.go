// Package gateway is the only neighbour of a sandbox: the end of every packet
// that leaves it, and the only program that has both the sandbox's network
// namespace and the sockets of the proxy.
//
// Call [Run] as root in a network namespace that has nothing but loopback; the
// sandbox then joins that namespace. For the moment of its start the gateway may
// administrate it: it brings up the loopback device, routes everything to it and
// redirects every TCP connection and every DNS query to itself. Then it drops
// its user and all capabilities, on all threads, and only then serves:
//
//   - 127.0.0.1:3128, the proxy that clients are configured for. Its bytes are
//     relayed to the proxy's socket as they are.
//   - every other TCP connection, whatever its address and port. It becomes a
//     CONNECT on the proxy's socket, for the name that the client looked up.
//   - DNS. Each name gets an address of its own that leads nowhere; nothing is
//     ever forwarded, so a query carries nothing out.
//
// The gateway decides nothing and resolves nothing: it passes on what a client
// asks for, and the proxy decides. What is neither TCP nor DNS (UDP, QUIC, ICMP,
// IPv6) fails at once instead of timing out. When the gateway ends, the sandbox
// has no network at all.
//
// In a Pod ([Config.Pod]) the namespace has devices, which the proxy's own user alone may use. Where there can be no
// packet rules, the gateway is a [Relay]: what it cannot enforce, it tests before it serves.
//
// Open run_linux.go for the order of these steps, relay_linux.go for what becomes of a
// connection, and dns.go for the names.
//
// The package trusts nothing that comes from the sandbox: the table of names,
// the number of connections, every message and every wait are bounded.
package gateway

import (
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/ALRubinger/aileron/internal/uplink"
)

// Addresses of the gateway's listeners. The sandbox's resolv.conf may name any
// loopback address: port 53 is redirected wherever it leads.
var (
	explicitAddr = netip.MustParseAddrPort("127.0.0.1:3128")
	redirectAddr = netip.MustParseAddrPort("127.0.0.1:15001")
	dnsAddr      = netip.MustParseAddrPort("127.0.0.1:15353")
)

// Defaults of Config.
const (
	DefaultProxy    = "/run/aileron/proxy.sock"
	DefaultRedirect = "/run/aileron/redirect.sock"
	DefaultPorts    = "/run/aileron/ports.sock"
	DefaultUser     = 65532
	DefaultPlane    = 65533
)

// Config configures a gateway. The zero value works in the container that
// package sandbox makes.
type Config struct {
	// Proxy is the proxy's socket for clients that are configured for a
	// proxy; "" is DefaultProxy.
	Proxy string
	// Redirect is the proxy's socket for redirected connections. The gateway
	// opens each with a CONNECT. "" is DefaultRedirect.
	Redirect string
	// Ports is the socket from which connections of the host to ports of the
	// sandbox come; "" is DefaultPorts. If it does not exist, there are none.
	Ports string
	// User is the user and group id to serve as; 0 is DefaultUser.
	User int
	// KeepUser serves as the user that started the gateway: in a user namespace that maps one user alone there is no
	// other. All else that makes a process privileged is dropped all the same.
	KeepUser bool
	// Pod seals a network namespace that has devices, as that of a Pod has. Only processes of the user Plane may use
	// them: that of the proxy, which shares the namespace.
	Pod bool
	// Plane is the user of the proxy in a Pod; 0 is DefaultPlane. No process of the sandbox may be able to become it.
	Plane int
	// Relay serves without packet rules and without a privilege; nil for a gateway that has them.
	Relay *Relay
	// Ready receives the line "ready" when everything is set up, all
	// privileges are gone and the first byte may come; nil discards it.
	Ready io.Writer
	// Log receives warnings; nil discards them.
	Log *slog.Logger

	// Connections is the most that may be open; one more is closed as soon as
	// it is accepted. 0 is 4096, or what the limit of open files has room for.
	Connections int
	// Idle is the time after which a connection ends on which nothing moves;
	// 0 is two hours, longer than the proxy's own limits.
	Idle time.Duration
}

func (c Config) withDefaults() Config {
	if c.Proxy == "" {
		c.Proxy = DefaultProxy
	}
	if c.Redirect == "" {
		c.Redirect = DefaultRedirect
	}
	if c.Ports == "" {
		c.Ports = DefaultPorts
	}
	if c.User == 0 {
		c.User = DefaultUser
	}
	if c.Plane == 0 {
		c.Plane = DefaultPlane
	}
	if c.Ready == nil {
		c.Ready = io.Discard
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Idle == 0 {
		c.Idle = 2 * time.Hour
	}
	return c
}

// IsReserved reports whether a port of the sandbox is one of the gateway's own.
func IsReserved(port uint16) bool {
	return port == 53 || port == explicitAddr.Port() || port == redirectAddr.Port() || port == dnsAddr.Port()
}

// Relay configures a gateway without packet rules. The names that it gives lead to addresses of loopback, on which it
// listens at some ports; the plane comes over an uplink. What else leaves the namespace must be stopped from outside,
// by a NetworkPolicy for example: the relay is not ready before it has tried to reach what must not be reached.
type Relay struct {
	// Key is that of the uplink.
	Key uplink.Key
	// Listen is where the plane dials in, as host:port; "" for a plane that listens at Plane.
	Listen string
	// Plane is where the plane listens.
	Plane string
	// Ports are those at which names are reached; nil is 443 and 80.
	Ports []uint16
	// Public is the directory that gets the files that the sandbox may read, whenever a plane comes; "" for none.
	Public string
	// Fence has more addresses that must not be reached.
	Fence []netip.AddrPort
	// Again is the time between two tests of the fence while the relay serves; 0 is half a minute.
	Again time.Duration
}

// SetAddresses sets Ports and Fence from what a command line has.
func (r *Relay) SetAddresses(ports []uint, fence []string) error {
	for _, p := range ports {
		if p == 0 || p > 1<<16-1 || IsReserved(uint16(p)) {
			return fmt.Errorf("%d is no port for names: it is none, or the gateway's own", p)
		}
		r.Ports = append(r.Ports, uint16(p))
	}
	for _, s := range fence {
		at, err := netip.ParseAddrPort(s)
		if err != nil {
			return fmt.Errorf("an address that must not be reached: %w", err)
		}
		r.Fence = append(r.Fence, at)
	}
	return nil
}

// half is a connection of which one direction can be closed.
type half interface {
	net.Conn
	CloseWrite() error
}

// Join copies bytes between two connections until both directions have ended, or
// one has failed, and closes both.
func Join(a, b half) {
	defer a.Close()
	defer b.Close()
	var back sync.WaitGroup
	back.Go(func() { joinHalf(a, b) })
	joinHalf(b, a)
	back.Wait()
}

// joinTime bounds what is left of a connection of which one direction has failed.
const joinTime = 5 * time.Second

func joinHalf(to, from half) {
	if _, err := io.Copy(to, from); err != nil || to.CloseWrite() != nil {
		deadline := time.Now().Add(joinTime)
		_ = to.SetDeadline(deadline)
		_ = from.SetDeadline(deadline)
	}
}
