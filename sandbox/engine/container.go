package engine

import (
	"context"
	"fmt"
	"os"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/go-units"
)

// Config describes a container to make. In any case the container has no
// capability but those of CapAdd, gains none by running a program, and its
// image's health check is not run.
type Config struct {
	Name     string
	Labels   map[string]string
	Image    string   // by its id
	Command  []string // a program and its arguments, in place of the image's entrypoint
	User     string   // "" is the image's
	Groups   []string // of the user besides its own and those that the image lists, by their numbers
	Env      []string // added to the image's
	Dir      string   // the working directory
	Hostname string

	Stdin bool // its standard input is attached
	TTY   bool
	Init  bool // an init as process 1, where the engine has one

	Network   string // "none", or "container:ID" for another's; "" is the engine's own
	HostAlias bool   // the engine's host is known by [Engine.HostAlias]

	NoLog bool // its output is for who is attached alone

	CapAdd   []string
	Seccomp  string // of [Engine.Seccomp]; "" is the engine's own profile
	ReadOnly bool   // the root file system

	Mounts []Mount
	Tmpfs  map[string]string // options by path
	Masks  []string          // directories that are empty in the container

	Limits    Limits
	Memory    int64 // in bytes, besides the engine's default of swap; 0 is that of Limits
	Processes int64 // at most; 0 is no limit
}

// Mount is a directory or a file of the host in a container. One without a
// source is a volume without a name: it is removed with the container, and
// begins with what the image has there.
type Mount struct {
	Source, Target string
	Volume         string // a volume by its name, in place of a source
	ReadOnly       bool
}

// Seccomp returns a seccomp profile in the form of Config.Seccomp. A file that
// the engine needs for it is written to dir.
func (e *Engine) Seccomp(dir, profile string) (string, error) { return e.dialect.seccomp(dir, profile) }

// OwnedTmpfs returns the options of a tmpfs that belongs to a user, and whether
// the engine has such options.
func (e *Engine) OwnedTmpfs(uid, gid int) (options string, ok bool) {
	return e.dialect.ownedTmpfs(uid, gid)
}

// Create makes a container and returns its id. Its first process is not
// started.
func (e *Engine) Create(ctx context.Context, c Config) (id string, err error) {
	for _, m := range c.Mounts {
		if !utf8.ValidString(m.Source + m.Target) {
			return "", fmt.Errorf("mount %q at %q: engines take no path that is not UTF-8; rename the directory",
				m.Source, m.Target)
		}
	}
	config, host := c.config(), e.hostConfig(c)
	if err := e.dialect.adapt(config, host); err != nil {
		return "", err
	}
	// An engine goes on with what it was asked for, and a container that is made
	// after it was looked for would be left behind: its response is waited for.
	late, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(callTime, cancel) })()
	made, err := e.cli.ContainerCreate(late, config, host, nil, nil, c.Name)
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	return made.ID, err
}

// config is the part of c that does not depend on the host.
func (c Config) config() *container.Config {
	config := &container.Config{
		Image: c.Image, User: c.User, Env: c.Env, WorkingDir: c.Dir, Hostname: c.Hostname, Labels: c.Labels,
		// An image's health check would be run by the engine with the
		// capabilities that the container starts with.
		Healthcheck: &container.HealthConfig{Test: []string{"NONE"}},
		// Podman grants StopTimeout even to a forced removal; callers have given
		// their own grace by then.
		StopTimeout: new(int),
		Tty:         c.TTY, OpenStdin: c.Stdin, AttachStdin: c.Stdin, StdinOnce: c.Stdin,
		AttachStdout: true, AttachStderr: true,
	}
	if len(c.Command) > 0 {
		// The command is the entrypoint: an empty one would leave the image's own
		// in force on Podman.
		config.Entrypoint, config.Cmd = c.Command[:1], c.Command[1:]
	}
	return config
}

func (e *Engine) hostConfig(c Config) *container.HostConfig {
	host := &container.HostConfig{
		NetworkMode: container.NetworkMode(c.Network), ReadonlyRootfs: c.ReadOnly,
		GroupAdd: c.Groups, CapDrop: []string{"ALL"}, CapAdd: c.CapAdd, SecurityOpt: e.securityOptions(c.Seccomp),
		Resources: c.Limits.resources(container.Resources{Ulimits: e.ulimits()}),
	}
	if c.NoLog {
		host.LogConfig.Type = "none"
	}
	if c.Memory > 0 {
		host.Memory = c.Memory
	}
	if c.Processes > 0 {
		host.PidsLimit = &c.Processes
	}
	for _, m := range c.Mounts {
		if m.Source == "" {
			host.Mounts = append(host.Mounts,
				mount.Mount{Type: mount.TypeVolume, Source: m.Volume, Target: m.Target, ReadOnly: m.ReadOnly})
			continue
		}
		host.Mounts = append(host.Mounts,
			mount.Mount{Type: mount.TypeBind, Source: m.Source, Target: m.Target, ReadOnly: m.ReadOnly})
	}
	for at, options := range c.Tmpfs {
		setTmpfs(host, at, options)
	}
	for _, at := range c.Masks {
		setTmpfs(host, at, e.dialect.maskOptions())
	}
	if c.HostAlias {
		host.ExtraHosts = e.dialect.aliasHosts()
	}
	if c.Init {
		init := e.away || e.dialect.hasInit()
		host.Init = &init
	}
	return host
}

func setTmpfs(host *container.HostConfig, at, options string) {
	if host.Tmpfs == nil {
		host.Tmpfs = map[string]string{}
	}
	host.Tmpfs[at] = options
}

func (e *Engine) securityOptions(seccomp string) []string {
	opts := []string{"no-new-privileges"}
	if seccomp != "" {
		opts = append(opts, "seccomp="+seccomp)
	}
	// SELinux would keep a sandbox from the project and the gateway from the
	// session's sockets; relabelling a person's files is worse than no label.
	if _, err := os.Stat("/sys/fs/selinux/enforce"); err == nil || e.away {
		opts = append(opts, "label=disable")
	}
	return opts
}

// ulimits are those of this process, for an engine beside it.
func (e *Engine) ulimits() []*units.Ulimit {
	if e.away {
		return nil
	}
	files, procs := hardLimits()
	return []*units.Ulimit{{Name: "nofile", Soft: files, Hard: files}, {Name: "nproc", Soft: procs, Hard: procs}}
}

// hardLimits are those of this process: a container that asks for more does not
// start without CAP_SYS_RESOURCE.
func hardLimits() (files, procs int64) {
	limit := func(which int) int64 {
		var l syscall.Rlimit
		if syscall.Getrlimit(which, &l) != nil || l.Max > 1<<20 {
			return 1 << 20
		}
		return int64(l.Max)
	}
	const rlimitNproc = 6
	// Engines run their helpers with fewer processes than we may have.
	return limit(syscall.RLIMIT_NOFILE), min(limit(rlimitNproc), 32<<10)
}

// CreateScratch makes a container that is never started: its image's files can
// be read in it. It has no capability and no network. The caller removes it.
func (e *Engine) CreateScratch(ctx context.Context, c Config) (id string, err error) {
	id, err = e.Create(ctx, c)
	if err == nil {
		return id, nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTime)
	defer cancel()
	_ = e.Remove(ctx, c.Name) // it may be there all the same
	return "", err
}
