package upstream

import (
	"bufio"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/ALRubinger/aileron/proxy/address"
)

// addressError is a name that leads only where nobody may go. why is the
// address's class, never the address.
type addressError struct{ why string }

func (e *addressError) Error() string { return "dial upstream: " + e.why + " address" }

// maxAddresses is how many addresses of one name are looked at.
const maxAddresses = 16

// Dial returns a connection to "host:port", or an [*Error].
func (u *Client) Dial(ctx context.Context, hostport string) (net.Conn, error) {
	conn, err := u.dial(ctx, hostport)
	if err != nil {
		return nil, classify(ctx, hostport, err, nil)
	}
	return conn, nil
}

// dial connects to "host:port". A pinned name goes where the owner said. Any
// other is resolved once, and the address that was checked is the address
// that is dialled: again at connect time, below the resolver's reach. Behind
// a proxy of the owner's the name is the proxy's to resolve; an address that
// is written as such is checked all the same.
func (u *Client) dial(ctx context.Context, hostport string) (*countedConn, error) {
	ctx, cancel := context.WithTimeout(ctx, u.cfg.Dial)
	defer cancel()
	if u.cfg.Descriptors == nil {
		conn, err := u.connect(ctx, hostport)
		if err != nil {
			return nil, err
		}
		return &countedConn{Conn: conn}, nil
	}
	const n = 1 + lookupDescriptors
	if err := u.cfg.Descriptors.Acquire(ctx, n); err != nil {
		return nil, err
	}
	conn, err := u.connect(ctx, hostport)
	if err != nil {
		u.cfg.Descriptors.Release(n)
		return nil, err
	}
	u.cfg.Descriptors.Release(lookupDescriptors)
	return &countedConn{Conn: conn, free: sync.OnceFunc(func() { u.cfg.Descriptors.Release(1) })}, nil
}

// lookupDescriptors is how many descriptors the lookup of a name takes: it has a
// socket for each address family.
const lookupDescriptors = 2

func (u *Client) connect(ctx context.Context, hostport string) (net.Conn, error) {
	if pinned, ok := u.cfg.Resolve[hostport]; ok {
		return (&net.Dialer{}).DialContext(ctx, "tcp", pinned.String())
	}
	host, port, err := net.SplitHostPort(hostport)
	if err != nil {
		return nil, fmt.Errorf("dial upstream: %w", err)
	}
	if u.cfg.Proxy != nil {
		if addr, err := netip.ParseAddr(host); err == nil {
			if class := address.Classify(addr.Unmap()); !class.Public {
				return nil, &addressError{why: class.Reason}
			}
		}
		return u.dialThroughProxy(ctx, hostport)
	}
	addrs, err := u.addresses(ctx, host)
	if err != nil {
		return nil, err
	}
	checked := &net.Dialer{ControlContext: floor}
	var last error
	for _, addr := range addrs {
		conn, err := checked.DialContext(ctx, "tcp", net.JoinHostPort(addr.String(), port))
		if err == nil {
			return conn, nil
		}
		if last = err; ctx.Err() != nil {
			break
		}
	}
	return nil, last
}

// countedConn counts what was written on a connection, so that a request of
// which nothing left can be told from one that may have arrived, and what was
// read.
type countedConn struct {
	net.Conn
	written atomic.Int64
	read    atomic.Int64
	reset   atomic.Bool // its peer reset it, which only one of reading and writing sees
	free    func()      // gives its descriptor back; nil: it has none
	closed  func()      // called when it is closed; nil: nothing is
}

// Close implements net.Conn.
func (c *countedConn) Close() error {
	err := c.Conn.Close()
	if c.free != nil {
		c.free()
	}
	if c.closed != nil {
		c.closed()
	}
	return err
}

// CloseWrite ends the outbound half where the connection can.
func (c *countedConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}

func (c *countedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.read.Add(int64(n))
	c.note(err)
	return n, err
}

func (c *countedConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.written.Add(int64(n))
	c.note(err)
	return n, err
}

func (c *countedConn) note(err error) {
	if err != nil && errors.Is(err, syscall.ECONNRESET) {
		c.reset.Store(true)
	}
}

// addresses are the public addresses of a name, or an addressError.
func (u *Client) addresses(ctx context.Context, host string) ([]netip.Addr, error) {
	var found []netip.Addr
	if addr, err := netip.ParseAddr(host); err == nil {
		found = []netip.Addr{addr}
	} else {
		// The trailing dot keeps the host's search domains out.
		found, err = u.resolver.LookupNetIP(ctx, "ip", strings.TrimSuffix(host, ".")+".")
		if err != nil {
			return nil, fmt.Errorf("resolve upstream: %w", err)
		}
	}
	var public []netip.Addr
	why := "no"
	for _, addr := range found[:min(len(found), maxAddresses)] {
		addr = addr.Unmap()
		if class := address.Classify(addr); class.Public {
			public = append(public, addr)
		} else {
			why = class.Reason
		}
	}
	if len(public) == 0 {
		return nil, &addressError{why: why}
	}
	return public, nil
}

// floor is the last check before connect(2): the address in the kernel's
// hands is public, whatever happened above.
func floor(_ context.Context, _, addr string, _ syscall.RawConn) error {
	ap, err := netip.ParseAddrPort(addr)
	if err != nil {
		return &addressError{why: "unreadable"}
	}
	if class := address.Classify(ap.Addr()); !class.Public {
		return &addressError{why: class.Reason}
	}
	return nil
}

// dialThroughProxy asks the owner's own proxy for a tunnel (RFC 9110 section
// 9.3.6). It resolves the name; the address floor is then the proxy's.
func (u *Client) dialThroughProxy(ctx context.Context, hostport string) (net.Conn, error) {
	at := u.cfg.Proxy.Host
	if u.cfg.Proxy.Port() == "" {
		at = net.JoinHostPort(u.cfg.Proxy.Hostname(), "3128")
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", at)
	if err != nil {
		return nil, fmt.Errorf("dial the upstream proxy: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	head := "CONNECT " + hostport + " HTTP/1.1\r\nHost: " + hostport + "\r\n"
	if user := u.cfg.Proxy.User; user != nil {
		password, _ := user.Password()
		head += "Proxy-Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte(user.Username()+":"+password)) + "\r\n"
	}
	if _, err := conn.Write([]byte(head + "\r\n")); err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("ask the upstream proxy: %w", err)
	}
	br := bufio.NewReader(conn)
	res, err := http.ReadResponse(br, &http.Request{Method: http.MethodConnect})
	if err != nil || res.StatusCode != http.StatusOK || br.Buffered() > 0 {
		_ = conn.Close()
		return nil, errors.New("ask the upstream proxy: it refused the tunnel")
	}
	if !stop() {
		_ = conn.Close()
		return nil, ctx.Err()
	}
	return conn, nil
}
