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
type addressError struct{ class string }

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
			if class := address.Classify(addr.Unmap()); !class.Public {
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
	return (&net.Dialer{ControlContext: denyPrivate}).DialContext(ctx, "tcp", at)
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
	var public []netip.Addr
	denied := "no"
	for _, addr := range found[:min(len(found), maxAddresses)] {
		addr = addr.Unmap()
		if class := address.Classify(addr); class.Public {
			public = append(public, addr)
		} else {
			denied = class.Reason
		}
	}
	if len(public) == 0 {
		return nil, &addressError{class: denied}
	}
	return public, nil
}

// denyPrivate is the dialer's last check before connect(2): the address that the
// kernel gets is public, whatever happened above.
func denyPrivate(_ context.Context, _, addr string, _ syscall.RawConn) error {
	ap, err := netip.ParseAddrPort(addr)
	if err != nil {
		return &addressError{class: "unreadable"}
	}
	if class := address.Classify(ap.Addr()); !class.Public {
		return &addressError{class: class.Reason}
	}
	return nil
}
