package sandbox

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
)

// create makes a container. Every container is made here, because an image
// and a path are not ours. An image's health check would be run by the engine
// with the capabilities that the gateway starts with; a mount's names may be an
// archive's or a link's.
func (e *Engine) create(ctx context.Context, config *container.Config, host *container.HostConfig, name string) (container.CreateResponse, error) {
	for _, m := range host.Mounts {
		if !utf8.ValidString(m.Source + m.Target) {
			return container.CreateResponse{}, fmt.Errorf("mount %q at %q: engines take no path that is not UTF-8; rename the directory", m.Source, m.Target)
		}
	}
	config.Healthcheck = &container.HealthConfig{Test: []string{"NONE"}}
	if e.kind == "podman" {
		if err := plainMounts(host); err != nil {
			return container.CreateResponse{}, err
		}
	}
	// An engine goes on with what it was asked for, and a container that is made
	// after it was looked for is nobody's: its answer is waited for.
	late, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(callTime, cancel) })()
	c, err := e.cli.ContainerCreate(late, config, host, nil, nil, name)
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	return c, err
}

// lend makes a container that only lends its image's files, and is removed by
// whoever asked for it.
func (e *Engine) lend(ctx context.Context, config *container.Config, host *container.HostConfig) (id string, err error) {
	name := lookName()
	c, err := e.create(ctx, config, host, name)
	if err != nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTime)
		defer cancel()
		_ = e.remove(ctx, name) // it may be there all the same
		return "", err
	}
	return c.ID, nil
}

// plainMounts keeps Podman from reading a path as something else. Behind
// Docker's call it writes a mount as a line of source=…,target=… and reads it
// again as comma-separated values, so that a directory called "x,source=" with
// "etc" in it would be the host's /etc. Such a path goes by the older form,
// which is cut at colons; one with both is refused.
func plainMounts(host *container.HostConfig) error {
	var kept []mount.Mount
	for _, m := range host.Mounts {
		paths := m.Source + m.Target
		switch {
		case !strings.ContainsAny(paths, ",\"\r\n"):
			kept = append(kept, m)
		case m.Type != mount.TypeBind || strings.ContainsAny(paths, ":\r\n"):
			return fmt.Errorf("mount %q at %q: Podman takes no path with a comma or a quote beside a colon, and none with a line end; rename the directory", m.Source, m.Target)
		default:
			bind := m.Source + ":" + m.Target
			if m.ReadOnly {
				bind += ":ro"
			}
			host.Binds = append(host.Binds, bind)
		}
	}
	host.Mounts = kept
	for at := range host.Tmpfs {
		if strings.ContainsAny(at, ":,\"\r\n") {
			return fmt.Errorf("mount an empty directory at %q: Podman takes no such path; rename the directory", at)
		}
	}
	return nil
}

// hide mounts an empty directory over each that the box must not see.
func (e *Engine) hide(host *container.HostConfig, b Box) error {
	for _, dir := range b.Hide {
		rel, err := filepath.Rel(b.Dir, dir)
		if err != nil || rel == "." || !Within(dir, b.Dir) {
			return fmt.Errorf("hide %s: it does not lie in %s", dir, b.Dir)
		}
		options := "ro,size=4k,mode=0555"
		if e.kind == "podman" { // which would copy into it what it hides
			options += ",notmpcopyup"
		}
		if host.Tmpfs == nil {
			host.Tmpfs = map[string]string{}
		}
		host.Tmpfs[filepath.Join(Workspace, rel)] = options
	}
	return nil
}

// exposed names what must never be in a box and lies in its project: the
// engine's socket, with which a box would be the host, and the session's. "" is
// nothing.
func (e *Engine) exposed(b Box) string {
	secret := []string{b.SocketDir, b.mounts, e.dir, strings.TrimPrefix(e.cli.DaemonHost(), "unix://"),
		"/run/podman/podman.sock", "/run/docker.sock", "/run/containerd/containerd.sock", filepath.Join(os.Getenv("XDG_RUNTIME_DIR"), "podman/podman.sock")}
	for _, path := range secret {
		if path == "" {
			continue
		}
		real, err := filepath.EvalSymlinks(path)
		if err == nil && Within(real, b.Dir) && !slices.ContainsFunc(b.Hide, func(hidden string) bool { return Within(real, hidden) }) {
			return real
		}
	}
	return ""
}

// Within reports whether an absolute path is that directory or lies in it.
func Within(path, dir string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, "../")
}

// writePublic writes a file that the box's user reads, whatever the umask.
func writePublic(path string, data []byte, mode os.FileMode) error {
	if err := os.WriteFile(path, data, mode); err != nil {
		return err
	}
	return os.Chmod(path, mode)
}
