package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/internal/uplink"
)

// relayDNS is where the sandbox's resolv.conf leads: there are no packet rules that would lead there from elsewhere.
var relayDNS = netip.MustParseAddrPort("127.0.0.1:53")

// runRelay serves without packet rules.
func runRelay(ctx context.Context, cfg Config) error {
	rc := cfg.Relay
	if rc.Ports == nil {
		rc.Ports = []uint16{443, 80}
	}
	l, err := listenNamed(ctx, rc.Ports)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	defer l.close()
	if err := cfg.dropOwnPrivileges(); err != nil {
		return fmt.Errorf("drop privileges: %w", err)
	}
	fence := newFence(rc, os.Getenv)
	if err := fence.await(ctx, cfg.Log); err != nil {
		return fmt.Errorf("test the fence: %w", err)
	}
	link, err := uplink.NewRelay(uplink.RelayConfig{Key: rc.Key, Log: cfg.Log,
		Accept: func(ctx context.Context, at netip.Addr, ports []uint16, files map[string][]byte) error {
			if err := fence.mustNotReach(ctx, at, ports); err != nil {
				return err
			}
			return rc.publish(files)
		}})
	if err != nil {
		return err
	}
	var dialled net.Listener // where the plane dials in; until the fence holds, it is refused
	if rc.Listen != "" {
		var lc net.ListenConfig
		if dialled, err = lc.Listen(ctx, "tcp", rc.Listen); err != nil {
			return fmt.Errorf("listen for the plane: %w", err)
		}
		defer dialled.Close()
	}
	if _, err := io.WriteString(cfg.Ready, "ready\n"); err != nil {
		return fmt.Errorf("report that the relay is ready: %w", err)
	}
	r := &relay{cfg: cfg, names: newNames(), pipes: &pipes{}}
	r.names.first = firstLoopback
	r.open = func(ctx context.Context, kind uplink.Kind) (half, error) {
		ctx, cancel := context.WithTimeout(ctx, connectTimeout)
		defer cancel()
		conn, err := link.Open(ctx, kind)
		if err != nil {
			r.warnOnce.Do(func() { cfg.Log.Warn("the plane cannot be reached", "error", err) })
			return nil, err
		}
		return conn, nil
	}
	return serve(ctx, l, r, fence.watch, func(ctx context.Context) error {
		if dialled != nil {
			link.Serve(ctx, dialled)
		} else {
			link.Connect(ctx, rc.Plane)
		}
		return nil
	})
}

// listenNamed opens the listeners of a relay, or none.
func listenNamed(ctx context.Context, ports []uint16) (l *listeners, err error) {
	l = &listeners{}
	defer func() {
		if err != nil {
			l.close()
			if errors.Is(err, syscall.EACCES) {
				err = hint.New(err, "let the Pod listen on low ports: securityContext.sysctls, "+
					"net.ipv4.ip_unprivileged_port_start is 0")
			}
		}
	}()
	// Every address of loopback is that of a name. Nothing else reaches a socket that is bound to the device; where
	// the kernel lets no ordinary user bind it, a connection to another address is closed (named).
	lc := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		return c.Control(func(fd uintptr) {
			_ = unix.SetsockoptString(int(fd), unix.SOL_SOCKET, unix.SO_BINDTODEVICE, "lo")
		})
	}}
	lc.SetMultipathTCP(false)
	if l.explicit, err = lc.Listen(ctx, "tcp4", explicitAddr.String()); err != nil {
		return l, err
	}
	for _, port := range slices.Compact(slices.Sorted(slices.Values(ports))) {
		named, err := lc.Listen(ctx, "tcp4", ":"+strconv.Itoa(int(port)))
		if err != nil {
			return l, err
		}
		l.named = append(l.named, named)
	}
	if l.dnsTCP, err = lc.Listen(ctx, "tcp4", relayDNS.String()); err != nil {
		return l, err
	}
	l.dnsUDP, err = net.ListenUDP("udp4", net.UDPAddrFromAddrPort(relayDNS))
	return l, err
}

// dropOwnPrivileges makes the process an ordinary one. One that began as such cannot empty its bounding set, and need
// not: nothing that it executes gains a privilege.
func (c Config) dropOwnPrivileges() error {
	if os.Geteuid() == 0 {
		return errors.Join(c.dropPrivileges(), c.checkDropped())
	}
	if err := dropCapabilities(); err != nil {
		return err
	}
	want := unprivileged()
	delete(want, "CapBnd")
	return checkThreads(want)
}

// publish writes the files of a session to where the sandbox reads them.
func (rc *Relay) publish(files map[string][]byte) error {
	if rc.Public == "" {
		return nil
	}
	for name, data := range files {
		// A reader has the old file or the new one.
		part := filepath.Join(rc.Public, "."+name+".part")
		//nolint:gosec // the sandbox's user is another one
		err := os.WriteFile(part, data, 0o644)
		if err == nil {
			err = os.Rename(part, filepath.Join(rc.Public, name))
		}
		if err != nil {
			return fmt.Errorf("write what the sandbox may read: %w", err)
		}
	}
	return nil
}
