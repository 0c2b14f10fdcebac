package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
)

// docker is the dialect of Docker 20.10 and later.
type docker struct{}

func (docker) name() string { return "docker" }

func (d docker) find(ctx context.Context, patience Patience) (*Engine, error) {
	named := os.Getenv("DOCKER_HOST")
	host := cmp.Or(named, dockerSocket())
	if path, ok := strings.CutPrefix(host, "unix://"); ok && named == "" {
		if _, err := os.Stat(path); err != nil {
			return nil, errors.New("docker: no daemon runs, for there is no " + path +
				" (start it, or name another with DOCKER_HOST)")
		}
	}
	e, err := connectNamed(ctx, d, host, patience)
	if err != nil && named != "" {
		return nil, fmt.Errorf("%w (DOCKER_HOST names it: start its daemon, or unset DOCKER_HOST)", err)
	}
	return e, err
}

// dockerSocket is where the daemon of this host listens, or else one in a virtual machine of this user's.
func dockerSocket() string {
	const daemon = "/var/run/docker.sock"
	for _, at := range append([]string{daemon}, machineSockets()...) {
		if _, err := os.Stat(at); err == nil {
			return "unix://" + at
		}
	}
	return "unix://" + daemon
}

// machineSockets are where programs that run Docker in a virtual machine offer its API.
func machineSockets() (sockets []string) {
	if home, err := os.UserHomeDir(); err == nil {
		for _, at := range []string{".docker/run", ".docker/desktop", ".orbstack/run", ".colima/default", ".rd"} {
			sockets = append(sockets, filepath.Join(home, at, "docker.sock"))
		}
	}
	return sockets
}

func (docker) made(components []string) bool { return !podman{}.made(components) }

// seccomp returns the profile itself; Docker refuses the path of a file.
func (docker) seccomp(_, profile string) (string, error) { return profile, nil }

// hasInit is always true: Docker brings its own.
func (docker) hasInit() bool { return true }

// adapt removes the host name of a container that has another's network: the
// other's is its own, and Docker refuses a second.
func (docker) adapt(config *container.Config, host *container.HostConfig) error {
	if host.NetworkMode.IsContainer() {
		config.Hostname = ""
	}
	return nil
}

func (docker) maskOptions() string { return "ro,size=4k,mode=0555" }

func (docker) ownedTmpfs(uid, gid int) (string, bool) {
	return fmt.Sprintf("exec,mode=0755,uid=%d,gid=%d", uid, gid), true
}

func (docker) copiesOwners() bool { return true }

func (docker) makesBeside() bool { return true }

func (docker) sizesCreated() bool { return false }

func (docker) exit(ctx context.Context, e *Engine, c *Container) (Exit, error) {
	ended, faults := e.cli.ContainerWait(ctx, c.ID, container.WaitConditionNotRunning)
	select {
	case res := <-ended:
		return Exit{Code: int(res.StatusCode)}, nil
	case err := <-faults:
		return Exit{}, err
	}
}

func (docker) list(ctx context.Context, e *Engine, f Filter) ([]Listed, error) {
	found, err := e.cli.ContainerList(ctx, container.ListOptions{All: true,
		Filters: filters.NewArgs(filters.Arg("label", f.Label))})
	if err != nil {
		return nil, fmt.Errorf("list the containers: %w", err)
	}
	var all []Listed
	for _, c := range found {
		all = append(all, Listed{ID: c.ID, Labels: c.Labels, Names: c.Names})
	}
	return all, nil
}

func (docker) hostAlias() string { return "host.docker.internal" }

// aliasHosts defines the alias: only Docker Desktop does by itself.
func (d docker) aliasHosts() []string { return []string{d.hostAlias() + ":host-gateway"} }

func (docker) bridge() string { return "bridge" }

func (docker) texts(f fault) []string {
	return map[fault][]string{
		faultNotFound: {"no such container"},
		faultRemoving: {"already in progress"},
		faultNoFile:   {"no such file"},
	}[f]
}
