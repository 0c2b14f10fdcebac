package gateway

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net"
	"sync"

	"golang.org/x/sys/unix"
)

// Run sets up the network namespace that it is started in, drops every
// privilege and serves until ctx ends, which is no error. It returns when all
// that it started has ended; an error names the step that failed.
//
// The process must start as root with NET_ADMIN, SETUID, SETGID and SETPCAP in
// a namespace that has no other device than loopback, and be built without
// cgo: Go can then change all threads at once.
func Run(ctx context.Context, cfg Config) error {
	cfg = cfg.withDefaults()
	cfg.Connections = cmp.Or(cfg.Connections, min(maxConnections, roomForConnections()))
	if err := openNetwork(); err != nil {
		return fmt.Errorf("set up the network: %w", err)
	}
	if err := installRules(); err != nil {
		return fmt.Errorf("install the packet rules: %w", err)
	}
	d, err := openDoors(ctx)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	defer d.close()
	if err := dropPrivileges(cfg.User); err != nil {
		return fmt.Errorf("drop privileges: %w", err)
	}
	if err := checkDropped(cfg.User); err != nil {
		return fmt.Errorf("check that privileges are dropped: %w", err)
	}
	for _, path := range []string{cfg.Proxy, cfg.Redirect} {
		if err := unix.Access(path, unix.R_OK|unix.W_OK); err != nil {
			return fmt.Errorf("reach the plane's socket %s: %w", path, err)
		}
	}
	if _, err := io.WriteString(cfg.Ready, "ready\n"); err != nil {
		return fmt.Errorf("say ready: %w", err)
	}
	return serve(ctx, cfg, d)
}

// doors are the gateway's listeners.
type doors struct {
	explicit, redirected, dnsTCP net.Listener
	dnsUDP                       *net.UDPConn
}

func openDoors(ctx context.Context) (d *doors, err error) {
	d = &doors{}
	defer func() {
		if err != nil {
			d.close()
		}
	}()
	var lc net.ListenConfig
	// A client that speaks MPTCP goes on with TCP. Of such a connection the
	// kernel does not tell where it was going.
	lc.SetMultipathTCP(false)
	if d.explicit, err = lc.Listen(ctx, "tcp4", explicitAddr.String()); err != nil {
		return d, err
	}
	if d.redirected, err = lc.Listen(ctx, "tcp4", redirectAddr.String()); err != nil {
		return d, err
	}
	if d.dnsTCP, err = lc.Listen(ctx, "tcp4", dnsAddr.String()); err != nil {
		return d, err
	}
	// Not 0.0.0.0: an answer would leave from the route's source address, and
	// conntrack would not know it as the answer.
	d.dnsUDP, err = net.ListenUDP("udp4", net.UDPAddrFromAddrPort(dnsAddr))
	return d, err
}

func (d *doors) close() {
	for _, l := range []net.Listener{d.explicit, d.redirected, d.dnsTCP} {
		if l != nil {
			_ = l.Close()
		}
	}
	if d.dnsUDP != nil {
		_ = d.dnsUDP.Close()
	}
}

// serve runs all doors until ctx ends or one of them fails.
func serve(parent context.Context, cfg Config, d *doors) error {
	ctx, cancel := context.WithCancelCause(parent)
	defer cancel(nil)
	stop := context.AfterFunc(ctx, d.close)
	defer stop()

	names := newNames()
	r := &relay{cfg: cfg, names: names, pipes: &pipes{}}
	dns := &resolver{cfg: cfg, names: names}
	slots := make(chan struct{}, cfg.Connections)
	queries := make(chan struct{}, maxDNSConnections)

	var running sync.WaitGroup
	for _, door := range []func() error{
		func() error { return accept(ctx, d.explicit, slots, r.explicit) },
		func() error { return accept(ctx, d.redirected, slots, r.redirected) },
		func() error { return accept(ctx, d.dnsTCP, queries, dns.serveTCP) },
		func() error { return dns.serveUDP(d.dnsUDP) },
	} {
		running.Go(func() {
			if err := door(); err != nil && ctx.Err() == nil {
				cancel(err)
			}
		})
	}
	running.Wait()
	r.pipes.close()
	if n := names.refused.Load(); n > 0 {
		cfg.Log.Warn("the table of names was full", "refused_queries", n)
	}
	if parent.Err() != nil {
		return nil
	}
	return fmt.Errorf("serve the box: %w", context.Cause(ctx))
}
