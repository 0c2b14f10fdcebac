package engine

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
)

// podman is the dialect of Podman 4 and later, behind its Docker-compatible
// API. Where that fails, its own API is asked (libpod).
type podman struct{}

func (podman) name() string { return "podman" }

// find connects to the service that CONTAINER_HOST names, to the one of this
// host, or to one that it starts.
func (d podman) find(ctx context.Context, patience Patience) (*Engine, error) {
	if named := os.Getenv("CONTAINER_HOST"); named != "" {
		e, err := connectNamed(ctx, d, named, patience)
		if err != nil {
			return nil, fmt.Errorf("%w (CONTAINER_HOST names it: unset it, and aileron starts a service of its own)", err)
		}
		return e, nil
	}
	if runtime.GOOS != "linux" {
		return d.findMachine(ctx, patience)
	}
	socket := d.socket()
	if _, err := os.Stat(socket); err == nil && filepath.IsAbs(socket) {
		if e, err := connect(ctx, d, "unix://"+socket, patience); err == nil {
			return e, nil
		}
	}
	return startService(ctx, patience)
}

// findMachine connects to the service in Podman's virtual machine.
func (d podman) findMachine(ctx context.Context, patience Patience) (*Engine, error) {
	path, err := exec.LookPath("podman")
	if err != nil {
		return nil, errors.New("podman: it is not installed")
	}
	//nolint:gosec // the podman of PATH
	ask := exec.CommandContext(ctx, path, "machine", "inspect", "--format", "{{.ConnectionInfo.PodmanSocket.Path}}")
	out, err := ask.Output()
	socket := strings.TrimSpace(string(out))
	if err != nil || socket == "" {
		return nil, errors.New("podman: there is no machine (podman machine init; podman machine start), " +
			"and CONTAINER_HOST names no other service")
	}
	e, err := connect(ctx, d, "unix://"+socket, patience)
	if err != nil {
		return nil, fmt.Errorf("podman: its machine does not respond (podman machine start): %w", err)
	}
	return e, nil
}

// socket is where a service of this user's listens that the system keeps.
func (podman) socket() string {
	if os.Geteuid() == 0 {
		return "/run/podman/podman.sock"
	}
	return podmanUserSocket()
}

func podmanUserSocket() string {
	return filepath.Join(os.Getenv("XDG_RUNTIME_DIR"), "podman/podman.sock")
}

func (podman) made(components []string) bool {
	return slices.ContainsFunc(components, func(name string) bool { return strings.Contains(name, "Podman") })
}

// seccomp writes the profile to a file and returns its path; Podman refuses
// the text.
func (podman) seccomp(dir, profile string) (string, error) {
	file := filepath.Join(dir, "seccomp.json")
	if err := os.WriteFile(file, []byte(profile), 0o644); err != nil { //nolint:gosec // the engine reads it
		return "", fmt.Errorf("write the seccomp profile: %w", err)
	}
	if err := os.Chmod(file, 0o644); err != nil { //nolint:gosec // whatever the umask
		return "", fmt.Errorf("write the seccomp profile: %w", err)
	}
	return file, nil
}

// hasInit reports whether Podman's init is there: a program of its own, which
// hosts may not have.
func (podman) hasInit() bool {
	for _, path := range []string{"/usr/libexec/podman/catatonit", "/usr/bin/catatonit"} {
		if _, err := os.Stat(path); err == nil {
			return true
		}
	}
	return false
}

// adapt keeps Podman from reading a path as something else. Behind Docker's
// call it writes a mount as a line of source=…,target=… and parses it again as
// comma-separated values, so that a directory named "x,source=" with "etc" in
// it would be the host's /etc. Such a path is passed in the older form, which
// is cut at colons; one with both is refused.
func (podman) adapt(_ *container.Config, host *container.HostConfig) error {
	var kept []mount.Mount
	for _, m := range host.Mounts {
		paths := m.Source + m.Target
		switch {
		case !strings.ContainsAny(paths, ",\"\r\n"):
			kept = append(kept, m)
		case m.Type != mount.TypeBind || strings.ContainsAny(paths, ":\r\n"):
			return fmt.Errorf("mount %q at %q: Podman takes no path with a comma or a quote beside a colon, "+
				"and none with a line end; rename the directory", m.Source, m.Target)
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

// maskOptions keep Podman from copying into the tmpfs what it hides.
func (podman) maskOptions() string { return "ro,size=4k,mode=0555,notmpcopyup" }

func (podman) ownedTmpfs(int, int) (string, bool) { return "", false }

// copiesOwners reports false: Podman makes all that it copies the container's user's.
func (podman) copiesOwners() bool { return false }

func (podman) makesBeside() bool { return false }

func (podman) sizesCreated() bool { return true }

// exit asks Podman's own API: behind Docker's call, Podman 4 polls the container's
// state without a pause, and keeps a processor busy for each. The response comes
// when a further process has cleaned up behind the container, so Podman is asked
// for its state as soon as its process has ended.
func (d podman) exit(ctx context.Context, e *Engine, c *Container) (Exit, error) {
	type result struct {
		Exit
		err error
	}
	results := make(chan result, 2)
	var asking sync.WaitGroup
	defer asking.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	asking.Go(func() {
		if s, ok := e.stateOfEnded(ctx, c); ok {
			results <- result{Exit: Exit{Code: s.ExitCode, State: &s}}
		} else if e.unreported(ctx, c) {
			results <- result{err: ErrUnreported}
		}
	})
	asking.Go(func() {
		var r result
		r.Code, r.err = d.code(ctx, e, c)
		results <- r
	})
	first := <-results
	return first.Exit, first.err
}

// waitQuery is the call that responds with a container's exit code. Podman looks
// at the container each interval, which costs it 1 % of a processor, and ends as a
// service only when such a look is over.
const waitQuery = "/wait?condition=stopped&condition=exited&interval=50ms"

// code returns the exit code of a container when it has ended. Podman is not asked
// while a process that is held runs: the request is complete when that has ended.
// Until then its connection shows whether Podman is there.
func (podman) code(ctx context.Context, e *Engine, c *Container) (code int, err error) {
	path := "/containers/" + c.ID + waitQuery
	if c.Held() {
		r, err := e.requestAfter(ctx, http.MethodPost, libpodPath+path, c.process.done(ctx, func() {}))
		if err == nil {
			err = r.decode(&code)
			return code, err
		}
		// Podman has gone, which the next call reports, or waits for no request that long.
	}
	err = e.libpod(ctx, http.MethodPost, path, 64<<10, &code)
	return code, err
}

// requestAfter sends a request, except for its last bytes, and those when after is
// closed. The error is that of the connection, and comes when it breaks.
func (e *Engine) requestAfter(ctx context.Context, method, path string, after <-chan struct{}) (r response, err error) {
	conn, err := e.liveness.plain.Dialer()(ctx)
	if err != nil {
		return r, err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	head := method + " " + path + " HTTP/1.1\r\nHost: podman\r\nContent-Length: 0\r\nConnection: close\r\n"
	if _, err := io.WriteString(conn, head); err != nil {
		return r, err
	}
	over := make(chan struct{})
	defer close(over)
	go func() {
		select {
		case <-after:
			_, _ = io.WriteString(conn, "\r\n") // a failure is one of the response too
		case <-over:
		}
	}()
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return r, err
	}
	return readResponse(res, 64<<10)
}

// stateOfEnded returns the state of a container when its process has ended, if
// that can be seen without the engine. It is not ok where the engine does not know
// the exit code a moment later.
func (e *Engine) stateOfEnded(ctx context.Context, c *Container) (_ State, ok bool) {
	switch {
	case c.Held():
		select {
		case <-c.process.done(ctx, func() {}):
		case <-ctx.Done():
			return State{}, false
		}
	case !c.over:
		return State{}, false
	case c.exit != nil:
		return *c.exit, true
	}
	for range 20 { // conmon writes the code to a file, when it has passed on all output
		s, err := e.Inspect(ctx, c.ID)
		if err != nil {
			return State{}, false
		}
		if s.Exited {
			return s, true
		}
		select {
		case <-time.After(5 * time.Millisecond):
		case <-ctx.Done():
			return State{}, false
		}
	}
	return State{}, false
}

// ErrUnreported is returned when a container has ended and its monitor was killed
// before it reported how.
var ErrUnreported = errors.New("its monitor was killed")

// unreported reports whether the monitor of a container has ended without reporting
// the container's end, which it does before its own. Podman waits 20 s for that report.
func (e *Engine) unreported(ctx context.Context, c *Container) bool {
	if c.monitor == nil {
		return false
	}
	select {
	case <-c.monitor.done(ctx, func() {}):
	case <-ctx.Done():
		return false
	}
	s, err := e.Inspect(ctx, c.ID)
	return err == nil && s.Running
}

// list asks Podman's own API: behind Docker's call, Podman 4 fails for all
// containers while one is half removed. It also returns the files of containers
// with our names whose records an engine that was killed did not write, or has
// removed already.
func (d podman) list(ctx context.Context, e *Engine, f Filter) ([]Listed, error) {
	all, err := d.query(ctx, e, url.Values{"all": {"true"}, "external": {"true"}})
	if err != nil { // a removal under way makes it fail; the next sweep sees the rest
		return d.query(ctx, e, url.Values{"all": {"true"}, "filters": {`{"label":["` + f.Label + `"]}`}})
	}
	return slices.DeleteFunc(all, func(c Listed) bool {
		_, labelled := c.Labels[f.Label]
		orphan := c.Labels[f.Role] == "" && strings.EqualFold(c.State, "storage") && c.Named(f.NamePrefix) &&
			time.Since(c.Created) > f.OrphanGrace
		return !labelled && !orphan
	}), nil
}

func (podman) query(ctx context.Context, e *Engine, query url.Values) (all []Listed, err error) {
	if err := e.libpod(ctx, http.MethodGet, "/containers/json?"+query.Encode(), 64<<20, &all); err != nil {
		return nil, fmt.Errorf("list the containers: %w", err)
	}
	return all, nil
}

// libpodPath is that of Podman's own API.
const libpodPath = "/v4.0.0/libpod"

// libpod sends a request to Podman's own API, and decodes the response, of at
// most limit bytes, into v.
func (e *Engine) libpod(ctx context.Context, method, path string, limit int64, v any) error {
	res, err := request(ctx, e.cli, method, engineURL(e.cli, libpodPath+path), limit)
	if err != nil {
		return err
	}
	return res.decode(v)
}

// decode decodes a response of Podman's own API into v. The error is Podman's message.
func (r response) decode(v any) error {
	if r.code == http.StatusOK && json.Unmarshal(r.body, v) == nil {
		return nil
	}
	var fault struct{ Message string }
	if json.Unmarshal(r.body, &fault) == nil && fault.Message != "" {
		return fmt.Errorf("podman: %s", fault.Message)
	}
	return fmt.Errorf("podman: %s: %.200q", r.status, r.body)
}

func (podman) hostAlias() string { return "host.containers.internal" }

// aliasHosts is empty: Podman defines the alias, and would take Docker's word
// for the address literally.
func (podman) aliasHosts() []string { return nil }

func (podman) bridge() string { return "podman" }

func (podman) texts(f fault) []string {
	return map[fault][]string{
		faultNotFound:   {"no such container"},
		faultHalfGone:   {"not known"},
		faultRemoving:   {"already in progress"},
		faultEnding:     {"container state improper"},
		faultDependents: {"dependent"},
		faultNoFile:     {"no such file"},
	}[f]
}
