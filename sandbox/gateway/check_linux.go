package gateway

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"time"
)

// checkTime bounds a check.
const checkTime = 2 * time.Second

// Check returns nil if a gateway of this configuration is ready in the network namespace of the process: it does what a
// client of the sandbox would do. That a proxy is there is not part of it.
func Check(ctx context.Context, cfg Config) error {
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	given := netip.MustParsePrefix("198.18.0.0/15")
	if cfg.Relay != nil {
		given = netip.MustParsePrefix("127.64.0.0/10")
	}
	if err := checkName(ctx, "udp4", relayDNS.String(), given); err != nil {
		return fmt.Errorf("the gateway is not ready: %w", err)
	}
	if cfg.Relay != nil {
		return nil
	}
	// Addresses for documentation (RFC 5737): a response proves that what leaves ends at the gateway.
	if err := checkName(ctx, "tcp4", "192.0.2.1:53", given); err != nil {
		return fmt.Errorf("connections are not redirected: %w", err)
	}
	var d net.Dialer
	conn, err := d.DialContext(ctx, "udp4", "192.0.2.1:443")
	if err == nil {
		_, err = conn.Write([]byte("aileron"))
		_ = conn.Close()
	}
	if err == nil || os.IsTimeout(err) {
		return errors.New("the network is not sealed: a packet could be sent")
	}
	return nil
}

// checkName looks up the name of the session's API at a server.
func checkName(ctx context.Context, network, server string, given netip.Prefix) error {
	var d net.Dialer
	r := &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return d.DialContext(ctx, network, server)
	}}
	found, err := r.LookupNetIP(ctx, "ip4", "aileron.internal.")
	if err != nil {
		return err
	}
	if len(found) != 1 || !given.Contains(found[0].Unmap()) {
		return fmt.Errorf("the name aileron.internal has the addresses %v", found)
	}
	return nil
}
