package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Run sets up the network namespace of the process, drops every privilege and
// serves until ctx ends, which is no error. It returns when all that it started
// has ended; an error names the step that failed.
//
// The process must start as root with NET_ADMIN, SETUID, SETGID and SETPCAP in
// a namespace that has no device but loopback, or with [Config.KeepUser] with
// NET_ADMIN and SETPCAP there. It must be built without cgo:
// only then can Go change the privileges of all threads at once.
func Run(ctx context.Context, cfg Config) error {
	cfg = cfg.withDefaults()
	cfg.Connections = cmp.Or(cfg.Connections, min(maxConnections, roomForConnections()))
	if cfg.Relay != nil {
		return runRelay(ctx, cfg)
	}
	if err := cfg.openNetwork(); err != nil {
		return fmt.Errorf("set up the network: %w", err)
	}
	if err := cfg.installRules(); err != nil {
		return fmt.Errorf("install the packet rules: %w", err)
	}
	l, err := listen(ctx)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	defer l.close()
	if err := cfg.dropPrivileges(); err != nil {
		return fmt.Errorf("drop privileges: %w", err)
	}
	if err := cfg.checkDropped(); err != nil {
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
	r := &relay{cfg: cfg, names: newNames(), pipes: &pipes{}}
	r.open = r.openSocket
	return serve(ctx, l, r, func(ctx context.Context) error { r.servePorts(ctx); return nil })
}

// serve serves all listeners, and runs others beside them, until ctx ends or one of them fails.
func serve(parent context.Context, l *listeners, r *relay, others ...func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(parent)
	defer cancel(nil)
	stop := context.AfterFunc(ctx, l.close)
	defer stop()

	cfg, names := r.cfg, r.names
	dns := &resolver{cfg: cfg, names: names}
	slots := make(chan struct{}, cfg.Connections)
	queries := make(chan struct{}, maxDNSConnections)

	runs := []func() error{
		func() error { return accept(ctx, l.explicit, slots, r.explicit) },
		func() error { return accept(ctx, l.dnsTCP, queries, dns.serveTCP) },
		func() error { return dns.serveUDP(l.dnsUDP) },
	}
	if l.redirected != nil {
		runs = append(runs, func() error { return accept(ctx, l.redirected, slots, r.redirected) })
	}
	for _, named := range l.named {
		runs = append(runs, func() error { return accept(ctx, named, slots, r.named) })
	}
	for _, other := range others {
		runs = append(runs, func() error { return other(ctx) })
	}
	var running sync.WaitGroup
	for _, run := range runs {
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

// listeners are what the gateway serves.
type listeners struct {
	explicit, redirected, dnsTCP net.Listener
	named                        []net.Listener
	dnsUDP                       *net.UDPConn
}

// listen opens all listeners, or none.
func listen(ctx context.Context) (l *listeners, err error) {
	l = &listeners{}
	defer func() {
		if err != nil {
			l.close()
		}
	}()
	var lc net.ListenConfig
	// A client that speaks MPTCP falls back to TCP: the kernel has no original
	// destination for an MPTCP connection.
	lc.SetMultipathTCP(false)
	if l.explicit, err = lc.Listen(ctx, "tcp4", explicitAddr.String()); err != nil {
		return l, err
	}
	if l.redirected, err = lc.Listen(ctx, "tcp4", redirectAddr.String()); err != nil {
		return l, err
	}
	if l.dnsTCP, err = lc.Listen(ctx, "tcp4", dnsAddr.String()); err != nil {
		return l, err
	}
	// Not 0.0.0.0: an answer would leave from the route's source address, and
	// conntrack would not recognise it as the answer.
	l.dnsUDP, err = net.ListenUDP("udp4", net.UDPAddrFromAddrPort(dnsAddr))
	return l, err
}

func (l *listeners) close() {
	for _, tcp := range append([]net.Listener{l.explicit, l.redirected, l.dnsTCP}, l.named...) {
		if tcp != nil {
			_ = tcp.Close()
		}
	}
	if l.dnsUDP != nil {
		_ = l.dnsUDP.Close()
	}
}

// maxConnections may be open at once, if the limit of open files has room.
const maxConnections = 4096

// roomForConnections returns the number of connections that the limit of open
// files has room for: two sockets and a pipe each. Without descriptors a
// connection can be neither accepted nor refused.
func roomForConnections() int {
	const others = 256
	var l syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l) != nil || l.Cur > 1<<20 {
		return 1 << 18
	}
	return max(1, (int(l.Cur)-others)/4)
}

// accept serves each connection of l until l closes, as many at once as slots
// has room for. One more is closed at once, so that a client that floods the
// gateway takes nothing but its own connections. accept returns when every
// connection that it served has ended; they are closed when ctx ends or l fails.
func accept(ctx context.Context, l net.Listener, slots chan struct{}, serve func(context.Context, *net.TCPConn)) error {
	var running sync.WaitGroup
	defer running.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for {
		conn, err := l.Accept()
		if isExhausted(err) { // for now: connections that hold descriptors will end
			if wait(ctx, 20*time.Millisecond) != nil {
				return nil
			}
			continue
		}
		if errors.Is(err, syscall.ECONNABORTED) {
			continue
		}
		if err != nil {
			return err
		}
		select {
		case slots <- struct{}{}:
		default:
			_ = conn.Close()
			continue
		}
		running.Go(func() {
			defer func() { <-slots }()
			stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
			defer stop()
			defer conn.Close()
			serve(ctx, conn.(*net.TCPConn))
		})
	}
}

// isExhausted reports whether accept(2) failed for want of descriptors or memory.
func isExhausted(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) ||
		errors.Is(err, syscall.ENOBUFS) || errors.Is(err, syscall.ENOMEM)
}

// wait returns after d, or with the error of ctx when it ends first.
func wait(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
