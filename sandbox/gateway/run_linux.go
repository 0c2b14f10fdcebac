package gateway

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"sync"

	"golang.org/x/sys/unix"
)

// Run sets up the network namespace of the process, drops every privilege and
// serves until ctx ends, which is no error. It returns when all that it started
// has ended; an error names the step that failed.
//
// The process must start as root with NET_ADMIN, SETUID, SETGID and SETPCAP in
// a namespace that has no device but loopback. It must be built without cgo:
// only then can Go change the privileges of all threads at once.
func Run(ctx context.Context, cfg Config) error {
	cfg = cfg.withDefaults()
	cfg.Connections = cmp.Or(cfg.Connections, min(maxConnections, roomForConnections()))
	if err := openNetwork(); err != nil {
		return fmt.Errorf("set up the network: %w", err)
	}
	if err := installRules(); err != nil {
		return fmt.Errorf("install the packet rules: %w", err)
	}
	l, err := listen(ctx)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	defer l.close()
	if err := dropPrivileges(cfg.User); err != nil {
		return fmt.Errorf("drop privileges: %w", err)
	}
	if err := checkDropped(cfg.User); err != nil {
		return fmt.Errorf("check that privileges are dropped: %w", err)
	}
	for _, path := range []string{cfg.Proxy, cfg.Redirect} {
		if err := unix.Access(path, unix.R_OK|unix.W_OK); err != nil {
			return fmt.Errorf("reach the proxy's socket %s: %w", path, err)
		}
	}
	if _, err := io.WriteString(cfg.Ready, "ready\n"); err != nil {
		return fmt.Errorf("report that the gateway is ready: %w", err)
	}
	return serve(ctx, cfg, l)
}

// serve serves all listeners until ctx ends or one of them fails.
func serve(parent context.Context, cfg Config, l *listeners) error {
	ctx, cancel := context.WithCancelCause(parent)
	defer cancel(nil)
	stop := context.AfterFunc(ctx, l.close)
	defer stop()

	names := newNames()
	r := &relay{cfg: cfg, names: names, pipes: &pipes{}}
	dns := &resolver{cfg: cfg, names: names}
	slots := make(chan struct{}, cfg.Connections)
	queries := make(chan struct{}, maxDNSConnections)

	var running sync.WaitGroup
	for _, run := range []func() error{
		func() error { return accept(ctx, l.explicit, slots, r.explicit) },
		func() error { return accept(ctx, l.redirected, slots, r.redirected) },
		func() error { return accept(ctx, l.dnsTCP, queries, dns.serveTCP) },
		func() error { return dns.serveUDP(l.dnsUDP) },
		func() error { r.servePorts(ctx); return nil },
	} {
		running.Go(func() {
			if err := run(); err != nil && ctx.Err() == nil {
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
	return fmt.Errorf("serve the sandbox: %w", context.Cause(ctx))
}
