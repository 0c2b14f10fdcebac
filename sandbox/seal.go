package sandbox

import (
	"archive/tar"
	"bytes"
	"context"
	_ "embed" // the seccomp profile
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/go-units"
)

// seccompProfile allows what programs need. Above all it leaves no socket
// family but UNIX, INET, INET6 and NETLINK: AF_VSOCK knows no network
// namespace, and engines' own profiles of some years let it through.
//
//go:embed seccomp.json
var seccompProfile string

// profile is the seccomp profile as the engine takes it: Docker wants its
// text, Podman the path of a file, and each refuses the other's form.
func (e *Engine) profile(dir string) (string, error) {
	if e.kind != "podman" {
		return seccompProfile, nil
	}
	file := filepath.Join(dir, "seccomp.json")
	if err := writePublic(file, []byte(seccompProfile), 0o644); err != nil {
		return "", fmt.Errorf("write the seccomp profile: %w", err)
	}
	return file, nil
}

func (b Box) labels(role string) map[string]string {
	labels := map[string]string{labelSession: b.Session, labelRole: role}
	if owner, err := ownerOf(os.Getpid()); err == nil {
		labels[labelOwner] = owner
	}
	return labels
}

func ulimits() []*units.Ulimit {
	files, procs := hardLimits()
	return []*units.Ulimit{{Name: "nofile", Soft: files, Hard: files}, {Name: "nproc", Soft: procs, Hard: procs}}
}

func (e *Engine) createGateway(ctx context.Context, b Box, seccomp string) (string, error) {
	pids, memory := int64(512), int64(256<<20)
	host := &container.HostConfig{
		NetworkMode: "none", ReadonlyRootfs: true, CapDrop: []string{"ALL"},
		CapAdd:      []string{"NET_ADMIN", "SETUID", "SETGID", "SETPCAP"},
		SecurityOpt: securityOptions(seccomp),
		Resources:   container.Resources{Ulimits: ulimits(), PidsLimit: &pids, Memory: memory},
		Mounts: []mount.Mount{
			{Type: mount.TypeBind, Source: b.SocketDir, Target: "/run/aileron", ReadOnly: true},
			{Type: mount.TypeBind, Source: b.Binary, Target: "/aileron", ReadOnly: true},
		},
	}
	image, err := e.gatewayImage(ctx)
	if err != nil {
		return "", err
	}
	c, err := e.create(ctx, &container.Config{Image: image, Entrypoint: []string{"/aileron"}, Cmd: []string{"gateway"}, User: "0:0", Hostname: hostname,
		WorkingDir: "/", Env: []string{"PATH=/"}, Labels: b.labels("gateway"), StopTimeout: new(int)}, host, b.name("gw"))
	if err != nil {
		return "", fmt.Errorf("make the gateway: %w", err)
	}
	return c.ID, nil
}

func securityOptions(seccomp string) []string {
	opts := []string{"no-new-privileges", "seccomp=" + seccomp}
	// SELinux would keep the box from the project and the gateway from the
	// session's sockets; relabelling a person's files is worse than no label.
	if _, err := os.Stat("/sys/fs/selinux/enforce"); err == nil {
		opts = append(opts, "label=disable")
	}
	return opts
}

func (e *Engine) createBox(ctx context.Context, b Box, gateway *part, seccomp string) (string, error) {
	config, host, ownHome, err := e.boxConfig(ctx, b, seccomp)
	if err != nil {
		return "", err
	}
	if b.Unsealed {
		host.ExtraHosts = e.aliasHosts()
	} else {
		own, err := ownNames(b)
		if err != nil {
			return "", err
		}
		host.NetworkMode = container.NetworkMode("container:" + gateway.id)
		if e.kind == "podman" { // on Docker the gateway's is the box's
			config.Hostname = hostname
		}
		host.Mounts = append(host.Mounts, own...)
	}
	if b.ReadOnly {
		files, err := mountFiles(b)
		if err != nil {
			return "", err
		}
		host.Mounts = append(host.Mounts, files...)
	}
	c, err := e.create(ctx, config, host, b.name("box"))
	if err != nil {
		return "", fmt.Errorf("make the box: %w", err)
	}
	if !ownHome {
		return c.ID, nil
	}
	return c.ID, e.giveHome(ctx, c.ID, config.User)
}

// hostname is a box's own name: programs look for its address, and the
// gateway would give them one that is nobody's.
const hostname = "box"

// ownNames are the files by which the box's programs find names, as mounts.
// Left to itself Podman makes no resolv.conf for such a network and copies the
// host's names and addresses into hosts; Docker copies the host's resolver.
func ownNames(b Box) ([]mount.Mount, error) {
	var mounts []mount.Mount
	for name, text := range map[string]string{
		"resolv.conf": "nameserver 127.0.0.53\noptions ndots:1 timeout:2 attempts:1\n",
		"hosts":       "127.0.0.1\tlocalhost " + hostname + "\n::1\tlocalhost ip6-localhost ip6-loopback\n",
	} {
		at := filepath.Join(b.mounts, name)
		if err := writePublic(at, []byte(text), 0o644); err != nil {
			return nil, fmt.Errorf("write the box's %s: %w", name, err)
		}
		mounts = append(mounts, mount.Mount{Type: mount.TypeBind, Source: at, Target: "/etc/" + name, ReadOnly: true})
	}
	return mounts, nil
}

// giveHome makes a user the owner of the home in a created container. What
// the image has there stays; a tmpfs would get the image's mode from some
// runtimes and its owner from others.
func (e *Engine) giveHome(ctx context.Context, id, user string) error {
	uid, gid := numbers(user)
	var home bytes.Buffer
	tw := tar.NewWriter(&home)
	if err := errors.Join(tw.WriteHeader(&tar.Header{Name: "home/agent/", Typeflag: tar.TypeDir, Mode: 0o755, Uid: uid, Gid: gid}), tw.Close()); err != nil {
		return fmt.Errorf("give %s a home: %w", user, err)
	}
	if err := e.cli.CopyToContainer(ctx, id, "/", &home, container.CopyToContainerOptions{}); err != nil {
		return fmt.Errorf("give %s a home: %w", user, err)
	}
	return nil
}

// numbers are those of a user that has no name; root's, of one that has none.
func numbers(user string) (uid, gid int) {
	_, _ = fmt.Sscanf(user, "%d:%d", &uid, &gid)
	return uid, gid
}

// boxConfig is a box but for its network, and whether its user needs a home.
func (e *Engine) boxConfig(ctx context.Context, b Box, seccomp string) (_ *container.Config, _ *container.HostConfig, ownHome bool, _ error) {
	img, about, err := e.pin(ctx, b.Image)
	if err != nil {
		return nil, nil, false, err
	}
	theirs := imageConfig{}
	if about.Config != nil {
		theirs = imageConfig{about.Config.User, about.Config.Env, about.Config.Volumes}
	}
	if volume := theirs.inProject(); volume != "" {
		return nil, nil, false, &ImageError{Image: img.Ref, Missing: []string{"room for the project: its VOLUME " + volume + " lies over it"}}
	}
	user, ownHome, err := e.boxUser(ctx, b, theirs)
	if err != nil {
		return nil, nil, false, err
	}
	pids := int64(MaxProcesses)
	host := &container.HostConfig{
		CapDrop:     []string{"ALL"},
		SecurityOpt: securityOptions(seccomp),
		Resources:   b.Limits.resources(container.Resources{Ulimits: ulimits(), PidsLimit: &pids}),
		Mounts:      []mount.Mount{{Type: mount.TypeBind, Source: b.Dir, Target: Workspace}},
	}
	if b.ReadOnly {
		host.ReadonlyRootfs = true
		host.Tmpfs = map[string]string{"/tmp": "exec,mode=1777", "/var/tmp": "exec,mode=1777", "/run": "mode=0755"}
		ownHome = e.homeOf(host, user, ownHome)
	}
	if err := e.hide(host, b); err != nil {
		return nil, nil, false, err
	}
	env, err := theirs.before(b.Env, b.Behind)
	if err != nil {
		return nil, nil, false, &ImageError{Image: img.Ref, Missing: []string{err.Error()}}
	}
	if b.ReadOnly || ownHome || !theirs.hasHome(user) {
		env = append([]string{"HOME=" + path.Dir(Workspace)}, env...)
	}
	if b.TTY {
		if t := os.Getenv("TERM"); t != "" {
			env = append(env, "TERM="+t)
		}
	}
	// Process 1 ignores signals that it has no handler for: an init makes
	// Ctrl-C work for every command. Podman's is a program of its own, which
	// hosts may not have; there a second Ctrl-C kills.
	init := e.kind == "docker"
	for _, path := range []string{"/usr/libexec/podman/catatonit", "/usr/bin/catatonit"} {
		if _, err := os.Stat(path); err == nil {
			init = true
		}
	}
	host.Init = &init
	// Podman grants StopTimeout even to a forced removal; Run has given its own
	// grace by then.
	// The command is the entrypoint: an empty one would leave the image's own
	// in force on Podman.
	return &container.Config{Image: img.id, Entrypoint: b.Command[:1], Cmd: b.Command[1:], User: user, Env: env, WorkingDir: Workspace,
		Tty: b.TTY, OpenStdin: b.Stdin != nil, StdinOnce: true, AttachStdin: b.Stdin != nil, AttachStdout: true, AttachStderr: true,
		Labels: b.labels("box"), StopTimeout: new(int)}, host, ownHome, nil
}

// homeOf gives a box with a read-only root a home that can be written to, and
// tells whether its user must still be made its owner.
func (e *Engine) homeOf(host *container.HostConfig, user string, own bool) bool {
	home := path.Dir(Workspace)
	if own && e.kind == "docker" {
		uid, gid := numbers(user)
		host.Tmpfs[home] = fmt.Sprintf("exec,mode=0755,uid=%d,gid=%d", uid, gid)
		return false // Docker changes nothing in such a container
	}
	// A volume without a name goes with its container, and begins as what the
	// image has there.
	host.Mounts = append(host.Mounts, mount.Mount{Type: mount.TypeVolume, Target: home})
	return own
}

// imageConfig is what an image says of the containers that are made from it.
type imageConfig struct {
	user    string
	env     []string
	volumes map[string]struct{}
}

// maxOwn bounds what is kept of an image's own value of a variable. The kernel
// takes 128 KiB as one string, ours included.
const maxOwn = 32 << 10

// before is env with the image's own values before those that are named, so
// that of two settings of one thing ours is the last. The error says what the
// image lacks.
func (c imageConfig) before(env, names []string) ([]string, error) {
	env = slices.Clone(env)
	for i, pair := range env {
		name, ours, _ := strings.Cut(pair, "=")
		own := envValue(c.env, name)
		switch {
		case own == "" || !slices.Contains(names, name):
		case len(own) > maxOwn:
			return nil, fmt.Errorf("a short %s: its own has %d bytes, and what a box adds needs room behind at most %d", name, len(own), maxOwn)
		default:
			env[i] = name + "=" + own + " " + ours
		}
	}
	return env, nil
}

// envValue is the last value of a variable, or "".
func envValue(env []string, name string) (value string) {
	for _, pair := range env {
		if v, ok := strings.CutPrefix(pair, name+"="); ok {
			value = v
		}
	}
	return value
}

// inProject is a volume that the engine would make in the person's project.
// One in its place goes: the project is there.
func (c imageConfig) inProject() string {
	for volume := range c.volumes {
		if at := path.Clean("/" + volume); at != Workspace && Within(at, Workspace) {
			return volume
		}
	}
	return ""
}

// hasHome reports whether the image's own user has a home of its own: one
// that the image's environment names, or the one of a named user, which the
// engine reads from the image.
func (c imageConfig) hasHome(user string) bool {
	return user != "" && user != "root" && !numeric(user) || namesHome(c.env)
}

func namesHome(env []string) bool {
	return slices.ContainsFunc(env, func(pair string) bool { return strings.HasPrefix(pair, "HOME=/") })
}

// rootless tells whether the engine is a person's own, so that user 0 of its
// containers is that person. Whoever asks is not: an ordinary user may be let
// in by root's engine.
func (e *Engine) rootless(ctx context.Context) (bool, error) {
	info, err := e.about(ctx)
	if err != nil {
		return false, fmt.Errorf("ask %s whether it runs without root: %w", e.kind, err)
	}
	return info.Rootless || slices.ContainsFunc(info.SecurityOptions, func(o string) bool { return o == "rootless" || o == "name=rootless" }), nil
}

// boxUser decides who the command is. The image's own user is kept where it
// can write to the project. Where it cannot, the command runs as the
// project's owner, and gets a home of its own: without capabilities even
// user 0 is only the owner of its files. On a rootless engine user 0 is the
// person who runs it.
func (e *Engine) boxUser(ctx context.Context, b Box, theirs imageConfig) (user string, ownHome bool, err error) {
	if rootless, err := e.rootless(ctx); rootless || err != nil {
		return "0:0", true, err
	}
	image, homeless := theirs.user, numeric(theirs.user) && !namesHome(theirs.env)
	info, err := os.Stat(b.Dir)
	if err != nil {
		return "", false, fmt.Errorf("look at the project: %w", err)
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok || info.Mode().Perm()&0o002 != 0 {
		return image, homeless, nil
	}
	owner := strconv.Itoa(int(st.Uid))
	// In numbers: what a name stands for is the image's word.
	uid, _, _ := strings.Cut(image, ":")
	if owner == "0" && (uid == "" || uid == "root" || uid == "0") {
		return "0:0", true, nil
	}
	if uid == owner {
		return image, homeless, nil
	}
	if uid == "agent" && owner == "1000" {
		return "1000:1000", false, nil
	}
	return owner + ":" + strconv.Itoa(int(st.Gid)), true, nil
}

// numeric reports whether a user is one that has no name.
func numeric(user string) bool {
	uid, _, _ := strings.Cut(user, ":")
	_, err := strconv.Atoi(uid)
	return err == nil
}
