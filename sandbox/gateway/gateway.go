package gateway

import (
	"io"
	"log/slog"
	"net/netip"
	"time"
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
