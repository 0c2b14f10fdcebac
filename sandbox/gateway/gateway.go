// Package gateway is the box's only neighbour: what every packet of the box
// ends at, and the only program that sees both the box's network namespace
// and the plane's sockets.
//
// It runs in a container of its own without any network, whose namespace the
// box shares. For the moment of its start it may administrate that namespace:
// it brings up the loopback device, routes everything to it and redirects
// every TCP connection and every DNS query to itself. Then it gives up its
// user and all capabilities, on all threads, and only then serves:
//
//   - 127.0.0.1:3128, the proxy that clients are configured for. Its bytes are
//     relayed to the plane as they are.
//   - every other TCP connection, whatever its address and port. It becomes a
//     CONNECT to the plane, under the name that the client asked DNS for.
//   - DNS. Each name gets an address of its own that leads nowhere; nothing is
//     ever forwarded, so a query carries nothing out.
//
// It decides nothing and resolves nothing: it says to the plane what the
// client wants, and the plane judges. Whatever is neither TCP nor DNS (UDP,
// QUIC, ICMP, IPv6) fails at once instead of timing out. When the gateway
// ends, the box has no network at all.
//
// The package trusts nothing that comes from the box: the table of names, the
// number of connections, every message and every wait are bounded.
package gateway

import (
	"io"
	"log/slog"
	"net/netip"
	"time"
)

// Where the gateway listens. The box's resolver points at any loopback
// address: port 53 is redirected wherever it leads.
var (
	explicitAddr = netip.MustParseAddrPort("127.0.0.1:3128")
	redirectAddr = netip.MustParseAddrPort("127.0.0.1:15001")
	dnsAddr      = netip.MustParseAddrPort("127.0.0.1:15353")
)

// Defaults of Config.
const (
	DefaultProxy    = "/run/aileron/proxy.sock"
	DefaultRedirect = "/run/aileron/redirect.sock"
	DefaultUser     = 65532
)

// Config is one gateway's.
type Config struct {
	// Proxy is the plane's socket for clients that are configured for a
	// proxy; "" is DefaultProxy.
	Proxy string
	// Redirect is the plane's socket for redirected connections, each opened
	// by a CONNECT of the gateway's; "" is DefaultRedirect.
	Redirect string
	// User is the user and group id to serve as; 0 is DefaultUser.
	User int
	// Ready gets the line "ready" when everything is set up, all privileges
	// are gone and the first byte may come; nil discards it.
	Ready io.Writer
	// Log gets what the owner may want to know of; nil discards it.
	Log *slog.Logger

	// Connections is how many may be open at once; one more is closed at
	// once. 0 is 4096, or as many as the limit of open files has room for.
	Connections int
	// Idle ends a connection on which nothing moved for so long; 0 is two
	// hours, longer than the plane's own limits.
	Idle time.Duration
}

func (c Config) withDefaults() Config {
	if c.Proxy == "" {
		c.Proxy = DefaultProxy
	}
	if c.Redirect == "" {
		c.Redirect = DefaultRedirect
	}
	if c.User == 0 {
		c.User = DefaultUser
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
