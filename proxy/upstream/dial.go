package upstream

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync"
	"syscall"

	"github.com/ALRubinger/aileron/proxy/address"
)

// addressError is returned for a name that leads to no address that may be
// dialled. class is that of an address, never the address itself.
type addressError struct {
	class string
	block netip.Prefix // from which the resolver answers every name; not valid: it does not
}

// Error implements error.
func (e *addressError) Error() string { return "dial upstream: " + e.class + " address" }

// maxAddresses is how many addresses of one name are looked at.
const maxAddresses = 16

// lookupDescriptors is how many descriptors the lookup of a name takes: it has a
// socket for each address family.
const lookupDescriptors = 2

// Dial connects to "host:port". Its error is an [*Error].
//
// A pinned name ([Options].Resolve) leads where the owner of the session has
// decided. Any other is resolved once, and the address that was checked is the
// address that is dialled: it is checked again at connect time, below the
// resolver's reach. Behind [Options].Proxy the name is the proxy's to resolve, unless
// its scheme is socks5; a host that is written as an address is checked all the same.
func (c *Client) Dial(ctx context.Context, hostport string) (net.Conn, error) {
	conn, err := c.dial(ctx, hostport)
	if err != nil {
		return nil, c.classify(ctx, hostport, err, nil)
	}
	return conn, nil
}

func (c *Client) dial(ctx context.Context, hostport string) (*countedConn, error) {
	ctx, cancel := context.WithTimeout(ctx, c.opts.Dial)
	defer cancel()
	files := c.opts.Descriptors
	if files == nil {
		files = unbounded{}
	}
	const n = 1 + lookupDescriptors
	if err := files.Acquire(ctx, n); err != nil {
		return nil, err
	}
	conn, err := c.connect(ctx, hostport)
	if err != nil {
		files.Release(n)
		return nil, err
	}
	files.Release(lookupDescriptors)
	return &countedConn{Conn: conn, release: sync.OnceFunc(func() { files.Release(1) })}, nil
}

// unbounded is the Descriptors of a client that has none.
type unbounded struct{}

// Acquire implements Descriptors.
func (unbounded) Acquire(context.Context, int) error { return nil }

// Release implements Descriptors.
func (unbounded) Release(int) {}

func (c *Client) connect(ctx context.Context, hostport string) (net.Conn, error) {
	if pinned, ok := c.opts.Resolve[hostport]; ok {
		return (&net.Dialer{}).DialContext(ctx, "tcp", pinned.String())
	}
	host, port, err := net.SplitHostPort(hostport)
	if err != nil {
		return nil, fmt.Errorf("dial upstream: %w", err)
	}
	byProxy := c.byProxy(hostport)
	if byProxy && c.opts.Proxy.Scheme != "socks5" {
		if addr, err := netip.ParseAddr(host); err == nil {
			if class := judge(c.network(ctx, []netip.Addr{addr}), addr); !class.Public {
				return nil, &addressError{class: class.Reason}
			}
		}
		return c.dialProxy(ctx, hostport)
	}
	addrs, err := c.addresses(ctx, host)
	if err != nil {
		return nil, err
	}
	var last error
	for _, addr := range addrs {
		conn, err := c.dialAddress(ctx, byProxy, net.JoinHostPort(addr.String(), port))
		if err == nil {
			if !byProxy {
				c.direct.Store(true)
			}
			return conn, nil
		}
		if last = err; ctx.Err() != nil {
			break
		}
	}
	return nil, last
}

// dialAddress connects to an address that was checked, through a proxy or not.
func (c *Client) dialAddress(ctx context.Context, byProxy bool, at string) (net.Conn, error) {
	if byProxy {
		return c.dialProxy(ctx, at)
	}
	return (&net.Dialer{ControlContext: c.denyPrivate}).DialContext(ctx, "tcp", at)
}

// addresses returns the public addresses of a name, or an addressError.
func (c *Client) addresses(ctx context.Context, host string) ([]netip.Addr, error) {
	var found []netip.Addr
	if addr, err := netip.ParseAddr(host); err == nil {
		found = []netip.Addr{addr}
	} else {
		// The trailing dot keeps the host's search domains out.
		found, err = c.resolver.LookupNetIP(ctx, "ip", strings.TrimSuffix(host, ".")+".")
		if err != nil {
			return nil, fmt.Errorf("resolve upstream: %w", err)
		}
	}
	found = found[:min(len(found), maxAddresses)]
	network := c.network(ctx, found)
	var public []netip.Addr
	denied := address.Class{Reason: "no"}
	for _, addr := range found {
		addr = addr.Unmap()
		if class := judge(network, addr); class.Public {
			public = append(public, addr)
		} else {
			denied = class
		}
	}
	if len(public) == 0 {
		return nil, c.denyAddress(ctx, denied)
	}
	return public, nil
}

// denyAddress returns the error of a name that leads to addresses of a class alone. It asks whether all names do where
// that is known of networks, and where a user may allow it.
func (c *Client) denyAddress(ctx context.Context, class address.Class) error {
	denied := &addressError{class: class.Reason}
	switch class.Reason {
	case "shared", "benchmarking", "reserved", "unique-local":
		if s, err := c.Survey(ctx); err == nil && s.Fake == class.Block {
			denied.block = class.Block
		}
	}
	return denied
}

// denyPrivate is the dialer's last check before connect(2): the address that the
// kernel gets is public, whatever happened above.
func (c *Client) denyPrivate(ctx context.Context, _, addr string, _ syscall.RawConn) error {
	ap, err := netip.ParseAddrPort(addr)
	if err != nil {
		return &addressError{class: "unreadable"}
	}
	if class := judge(c.network(ctx, []netip.Addr{ap.Addr()}), ap.Addr()); !class.Public {
		return &addressError{class: class.Reason}
	}
	return nil
}
