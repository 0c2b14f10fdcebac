package sandbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"github.com/docker/docker/client"
)

// Engine is Podman or Docker, behind the Docker API.
type Engine struct {
	kind    string // podman or docker
	version string
	arch    string // what its containers run on, as GOARCH names it
	cli     *client.Client
	pulse   *pulse
	service *podmanService // nil: the engine was running
	dir     string         // private files for this engine
	seen    sync.Map       // imagefs.Tree of each image that was looked into

	mu   sync.Mutex
	info *about // nil: it was not asked
}

// Find gives the engine of a kind: podman, docker, or auto for the first of
// the two that answers. An error says what is missing and what to do.
func Find(ctx context.Context, kind string) (*Engine, error) { return Patience{}.Find(ctx, kind) }

// Find is the function Find, with this patience for the engine as long as it
// is used.
func (p Patience) Find(ctx context.Context, kind string) (*Engine, error) {
	sweepDirs()
	var faults []string
	for _, k := range []string{"podman", "docker"} {
		if kind != "auto" && kind != k {
			continue
		}
		find := findPodman
		if k == "docker" {
			find = findDocker
		}
		e, err := find(ctx, p)
		if err == nil {
			return e, nil
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		faults = append(faults, err.Error())
	}
	if len(faults) == 0 {
		return nil, fmt.Errorf("find an engine: %q is neither auto, podman nor docker", kind)
	}
	return nil, &FindError{faults}
}

// FindError says why there is no engine, and what to do about each.
type FindError struct{ faults []string }

// ErrorClass and ErrorReason are for --json.
func (*FindError) ErrorClass() string  { return "unavailable" }
func (*FindError) ErrorReason() string { return "engine_not_found" }

func (e *FindError) Error() string {
	return "find an engine: " + strings.Join(e.faults, "; ") + "; docs/sandbox.md tells more"
}

// Kind is podman or docker.
func (e *Engine) Kind() string { return e.kind }

// Describe names the engine for people.
func (e *Engine) Describe() string { return e.kind + " " + e.version }

// Close ends what Find started.
func (e *Engine) Close() {
	_ = errors.Join(e.cli.Close(), e.pulse.plain.Close())
	if e.service != nil {
		e.service.stop()
	}
	if e.dir != "" {
		_ = os.RemoveAll(e.dir)
	}
}

func connect(ctx context.Context, kind, host string, patience Patience) (_ *Engine, err error) {
	cli, p, err := dial(kind, host, patience)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = errors.Join(cli.Close(), p.plain.Close())
		}
	}()
	cli.NegotiateAPIVersion(ctx)
	v, err := cli.ServerVersion(ctx)
	if waited := (*WaitError)(nil); errors.As(err, &waited) {
		return nil, fmt.Errorf("%s: %w", host, waited)
	}
	if err != nil {
		if why := p.ping(ctx); why != nil { // the client's own words hide it
			err = rootCause(why)
		}
		return nil, fmt.Errorf("%s does not answer at %s: %w", kind, host, err)
	}
	podman := false
	for _, c := range v.Components {
		podman = podman || strings.Contains(c.Name, "Podman")
	}
	if podman != (kind == "podman") {
		return nil, fmt.Errorf("%s: another engine answers at %s", kind, host)
	}
	return &Engine{kind: kind, version: v.Version, arch: v.Arch, cli: cli, pulse: p}, nil
}

// rootCause is the innermost error: those around it name the engine's address.
func rootCause(err error) error {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return err
		}
		err = inner
	}
}

func findDocker(ctx context.Context, patience Patience) (*Engine, error) {
	named := os.Getenv("DOCKER_HOST")
	host := cmp.Or(named, "unix:///var/run/docker.sock")
	if path, ok := strings.CutPrefix(host, "unix://"); ok && named == "" {
		if _, err := os.Stat(path); err != nil {
			return nil, errors.New("docker: no daemon runs, for there is no " + path + " (start it, or name another with DOCKER_HOST)")
		}
	}
	e, err := connectNamed(ctx, "docker", host, patience)
	if err != nil && named != "" {
		return nil, fmt.Errorf("%w (DOCKER_HOST names it: start its daemon, or unset DOCKER_HOST)", err)
	}
	return e, err
}

func findPodman(ctx context.Context, patience Patience) (*Engine, error) {
	if named := os.Getenv("CONTAINER_HOST"); named != "" {
		e, err := connectNamed(ctx, "podman", named, patience)
		if err != nil {
			return nil, fmt.Errorf("%w (CONTAINER_HOST names it: unset it, and aileron starts a service of its own)", err)
		}
		return e, nil
	}
	socket := "/run/podman/podman.sock"
	if os.Geteuid() != 0 {
		socket = filepath.Join(os.Getenv("XDG_RUNTIME_DIR"), "podman/podman.sock")
	}
	if _, err := os.Stat(socket); err == nil && filepath.IsAbs(socket) {
		if e, err := connect(ctx, "podman", "unix://"+socket, patience); err == nil {
			return e, nil
		}
	}
	return startPodman(ctx, patience)
}

// connectNamed is connect for an address of the user's.
func connectNamed(ctx context.Context, kind, host string, patience Patience) (*Engine, error) {
	if u, err := url.Parse(host); err != nil || u.Scheme != "unix" && u.Scheme != "tcp" && u.Scheme != "http" {
		return nil, fmt.Errorf("%s: %q is no unix:// or tcp:// address, and aileron speaks no other", kind, host)
	}
	return connect(ctx, kind, host, patience)
}

// engineDir names the directory of a service, or of a box's files, after the
// process that it belongs to, as ownerOf does: its number, its start, and the
// namespace in which the number counts.
const engineDir = "aileron-engine-%d-%d-%d-"

// makeDir makes such a directory for this process.
func makeDir() (string, error) {
	owner, err := ownerOf(os.Getpid())
	if err != nil {
		return "", err
	}
	var pid, start, namespace uint64
	if _, err := fmt.Sscanf(owner, ownerForm, &pid, &start, &namespace); err != nil {
		return "", fmt.Errorf("name a directory after %s: %w", owner, err)
	}
	return os.MkdirTemp("", fmt.Sprintf(engineDir, pid, start, namespace))
}

// sweepDirs removes what killed processes left.
func sweepDirs() {
	entries, _ := os.ReadDir(os.TempDir()) // none: nothing is left
	for _, entry := range entries {
		var pid, start, namespace uint64
		if _, err := fmt.Sscanf(entry.Name(), engineDir, &pid, &start, &namespace); err != nil {
			continue
		}
		if !ownerLives(fmt.Sprintf(ownerForm, pid, start, namespace)) {
			_ = os.RemoveAll(filepath.Join(os.TempDir(), entry.Name()))
		}
	}
}

// hardLimits are this process's own: a container that asks for more does not
// start without CAP_SYS_RESOURCE.
func hardLimits() (files, procs int64) {
	limit := func(which int) int64 {
		var l syscall.Rlimit
		if syscall.Getrlimit(which, &l) != nil || l.Max > 1<<20 {
			return 1 << 20
		}
		return int64(l.Max) //nolint:gosec // bounded above
	}
	const rlimitNproc = 6
	// Engines run their helpers with fewer processes than we may have.
	return limit(syscall.RLIMIT_NOFILE), min(limit(rlimitNproc), 32<<10)
}
