package sandbox

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/docker/api/types/network"
	"golang.org/x/sys/unix"
)

// Sealable tells whether this engine can seal a box: its containers must
// reach a unix socket in dir, a directory of this host. An engine in a
// virtual machine or on another host cannot; why says so for people. One that
// is not behind a unix socket itself is tried, with a container of image that
// is never started.
func (e *Engine) Sealable(ctx context.Context, image Image, dir string) (ok bool, why string, err error) {
	defer e.explain(&err)
	if e.service != nil {
		return true, "", nil // it is ours, and here
	}
	info, err := e.about(ctx)
	if err != nil {
		return false, "", fmt.Errorf("ask the engine where it runs: %w", err)
	}
	if kernel := kernelRelease(); info.KernelVersion != "" && info.KernelVersion != kernel {
		return false, fmt.Sprintf("%s runs on another kernel (%s) than this one (%s): no unix socket crosses into its containers", e.kind, info.KernelVersion, kernel), nil
	}
	if host, err := url.Parse(e.cli.DaemonHost()); err == nil && host.Scheme == "unix" {
		return true, "", nil // a mount that fails all the same ends the start
	}
	seen, err := e.sees(ctx, image, dir)
	if err != nil || seen {
		return seen, "", err
	}
	return false, fmt.Sprintf("%s at %s does not see the session's directory: no unix socket crosses into its containers", e.kind, e.cli.DaemonHost()), nil
}

func kernelRelease() string {
	var name unix.Utsname
	if unix.Uname(&name) != nil {
		return ""
	}
	return unix.ByteSliceToString(name.Release[:])
}

// sees mounts a directory of this host into a container and looks whether a
// file of it is there.
func (e *Engine) sees(ctx context.Context, img Image, dir string) (bool, error) {
	img, _, err := e.pin(ctx, img)
	if err != nil {
		return false, err
	}
	mark, err := os.CreateTemp(dir, "mark-")
	if err != nil {
		return false, fmt.Errorf("try the engine's mounts: %w", err)
	}
	_ = mark.Close()
	defer os.Remove(mark.Name())
	id, err := e.lend(ctx, &container.Config{Image: img.id, Cmd: []string{"/"}, Entrypoint: []string{}, User: "0:0", Labels: Box{Session: nobody}.labels("box")},
		&container.HostConfig{NetworkMode: "none", Mounts: []mount.Mount{{Type: mount.TypeBind, Source: dir, Target: "/host"}}})
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	if err != nil {
		return false, nil //nolint:nilerr // Docker refuses a mount whose source it does not see
	}
	defer func() { _ = e.remove(context.WithoutCancel(ctx), id) }()
	found, err := e.stat(ctx, id, "/host/"+filepath.Base(mark.Name()))
	return found.There, err
}

// HostAlias is the name by which an unsealed box finds the host of its
// engine.
func (e *Engine) HostAlias() string {
	if e.kind == "podman" {
		return "host.containers.internal"
	}
	return "host.docker.internal"
}

// aliasHosts make the alias known where the engine does not by itself. Podman
// does, and would take Docker's word for the address literally.
func (e *Engine) aliasHosts() []string {
	if e.kind == "podman" {
		return nil
	}
	return []string{e.HostAlias() + ":host-gateway"}
}

// ListenForAlias opens a TCP port of this host that an unsealed box reaches
// at HostAlias: on the address that the engine's bridge has here, or on
// loopback, where engines in a virtual machine bring what is sent to the
// alias.
func (e *Engine) ListenForAlias(ctx context.Context) (net.Listener, error) {
	var lc net.ListenConfig
	name := map[string]string{"podman": "podman", "docker": "bridge"}[e.kind]
	if bridge, err := e.cli.NetworkInspect(ctx, name, network.InspectOptions{}); err == nil {
		for _, addr := range addressesHere(bridge) {
			if l, err := lc.Listen(ctx, "tcp", netip.AddrPortFrom(addr, 0).String()); err == nil {
				return l, nil
			}
		}
	}
	l, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("open a port for the box: %w", err)
	}
	return l, nil
}

// addressesHere are the addresses that an engine's bridge may have on this
// host: its gateway, and what its device has, because Docker leaves out the
// gateway that it chose itself.
func addressesHere(bridge network.Inspect) []netip.Addr {
	var found []netip.Addr
	for _, c := range bridge.IPAM.Config {
		if addr, err := netip.ParseAddr(c.Gateway); err == nil {
			found = append(found, addr)
		}
	}
	device, err := net.InterfaceByName(bridge.Options["com.docker.network.bridge.name"])
	if err != nil {
		return found
	}
	addrs, err := device.Addrs()
	if err != nil {
		return found
	}
	for _, a := range addrs {
		if prefix, err := netip.ParsePrefix(a.String()); err == nil && prefix.Addr().Is4() {
			found = append(found, prefix.Addr())
		}
	}
	return found
}
