package engine

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/docker/docker/client"

	"github.com/ALRubinger/aileron/internal/procid"
	"github.com/ALRubinger/aileron/internal/system"
)

// podmanService is a `podman system service` of our own, for hosts on which
// no socket is kept open. It lives as long as the engine.
type podmanService struct {
	cmd  *exec.Cmd
	held net.Conn // keeps it from ending for want of work
	done chan struct{}
}

// serviceGrace is how long a service of ours goes on with what it does when it
// is asked to end, which is when we end or are killed. Cut short, it would leave
// a container by half; without work it ends at once.
const serviceGrace = 20 * time.Second

// startService starts a service and returns the engine behind it.
func startService(ctx context.Context, patience Patience) (_ *Engine, err error) {
	path, err := exec.LookPath("podman")
	if err != nil {
		return nil, errors.New("podman: it is not installed (apt-get install podman runc)")
	}
	dir, err := MakeDir()
	if err != nil {
		return nil, fmt.Errorf("podman: %w", err)
	}
	defer func() {
		if err != nil {
			_ = os.RemoveAll(dir)
		}
	}()
	socket := filepath.Join(dir, "s") // its path may not be long
	if len(socket) > system.MaxSocketPath {
		return nil, fmt.Errorf("podman: the path of its service's socket, %s, is longer than %d bytes, "+
			"which no socket's may be; set TMPDIR to a shorter directory", socket, system.MaxSocketPath)
	}
	cmd, err := serviceCommand(path, dir, socket)
	if err != nil {
		return nil, fmt.Errorf("podman: %w", err)
	}
	logs := &Tail{}
	cmd.Stderr = logs
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("podman: %w", err)
	}
	s := &podmanService{cmd: cmd, done: make(chan struct{})}
	go func() { _ = cmd.Wait(); close(s.done) }()
	defer func() {
		if err != nil {
			s.stop()
		}
	}()
	starting := &liveness{kind: "podman", patience: patience, pid: cmd.Process.Pid, said: logs.LastError}
	err = starting.await(ctx, "start its service", func(ctx context.Context) error { return s.listens(ctx, socket, logs) })
	if err != nil {
		return nil, err
	}
	e, err := connectOwn(ctx, "unix://"+socket, patience)
	if err != nil {
		return nil, s.explain(err, logs)
	}
	if s.held, err = holdService(ctx, socket); err != nil {
		_ = errors.Join(e.cli.Close(), e.liveness.plain.Close())
		return nil, fmt.Errorf("podman: its service does not respond: %w", err)
	}
	e.service, e.dir, e.liveness.said = s, dir, logs.LastError
	if e.liveness.pid == 0 {
		e.liveness.pid = cmd.Process.Pid
	}
	e.liveness.rest = newRest(e.liveness.pid)
	return e, nil
}

// serviceCommand is the service of the program at path, with its socket, and
// the configuration that this host needs in dir.
func serviceCommand(path, dir, socket string) (*exec.Cmd, error) {
	grace := strconv.Itoa(int(serviceGrace.Seconds()))
	cmd := exec.Command(path, "system", "service", "--time", grace, "unix://"+socket) //nolint:gosec,noctx // ended by stop
	// A service, and not the client of one that these would name; and not in a
	// directory that may have been removed.
	cmd.Env = slices.DeleteFunc(os.Environ(), func(pair string) bool {
		return strings.HasPrefix(pair, "CONTAINER_HOST=") || strings.HasPrefix(pair, "CONTAINER_CONNECTION=")
	})
	cmd.Dir = "/"
	if os.Getenv("CONTAINERS_CONF") == "" {
		conf := filepath.Join(dir, "containers.conf")
		if err := os.WriteFile(conf, podmanConf(), 0o600); err != nil {
			return nil, err
		}
		cmd.Env = append(cmd.Env, "CONTAINERS_CONF="+conf)
	}
	// The service ends with us, and a Ctrl-C on our terminal is not for it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	system.DieWithParent(cmd.SysProcAttr, syscall.SIGTERM)
	return cmd, nil
}

// listens waits until the service has opened its socket. Before it does, it
// waits for the locks of Podman's storage, which another Podman may hold.
func (s *podmanService) listens(ctx context.Context, socket string, logs *Tail) error {
	for pause := time.Millisecond; ; pause = min(2*pause, 20*time.Millisecond) {
		if conn, err := new(net.Dialer).DialContext(ctx, "unix", socket); err == nil {
			return conn.Close()
		}
		select {
		case <-time.After(pause):
		case <-s.done:
			return s.explain(errors.New("podman: its service does not respond"), logs)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// explain is err, or how the service ended, with the last error that it logged.
func (s *podmanService) explain(err error, logs *Tail) error {
	select {
	case <-s.done:
	case <-time.After(time.Second): // a dead one is seen at once
		return err
	}
	last := logs.LastError()
	if last == "" {
		last = "it said nothing"
	}
	return fmt.Errorf("podman: its service ended (%s): %s", s.cmd.ProcessState, last)
}

// Service is the identity of the process that Find has started (package
// procid); "" where it started none.
func (e *Engine) Service() string {
	if e.service == nil {
		return ""
	}
	id, err := procid.Of(e.service.cmd.Process.Pid)
	if err != nil { // it has ended
		return ""
	}
	return id
}

// holdService begins a request that is never completed: the option that sets a
// service's grace also ends it after that time without a request, and a person
// may need longer to enter a passphrase.
func holdService(ctx context.Context, socket string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "unix", socket)
	if err != nil {
		return nil, err
	}
	const head = "POST /v1.40/auth HTTP/1.1\r\nHost: podman\r\nContent-Type: application/json\r\nContent-Length: 1\r\n\r\n"
	if _, err := conn.Write([]byte(head)); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return conn, nil
}

// stop ends the service when nothing of ours is under way. Nothing waits for the
// grace of one that hangs: the session's reaper removes what is left.
func (s *podmanService) stop() {
	if s.held != nil {
		_ = s.held.Close()
	}
	if activityOf(s.cmd.Process.Pid).stopped() { // it would not see a SIGTERM
		_ = s.cmd.Process.Kill()
	}
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-s.done:
	case <-time.After(5 * time.Second):
		_ = s.cmd.Process.Kill()
		<-s.done
	}
}

// connectOwn is connect for a Podman service that we started: it is Podman, of
// this host. Asked for its version, Podman first asks the host's package manager
// for that of each of its programs, which takes longer than the start of a
// container.
func connectOwn(ctx context.Context, host string, patience Patience) (*Engine, error) {
	cli, p, err := dial("podman", host, patience)
	if err != nil {
		return nil, err
	}
	version, err := pingPodman(ctx, cli)
	if err != nil {
		_ = errors.Join(cli.Close(), p.plain.Close())
		if waited := (*WaitError)(nil); errors.As(err, &waited) {
			return nil, waited
		}
		return nil, fmt.Errorf("podman: its service does not respond: %w", rootCause(err))
	}
	cli.NegotiateAPIVersion(ctx)
	return &Engine{dialect: podman{}, version: version, cli: cli, liveness: p}, nil
}

// pingPodman returns the version in the header of the response to a ping.
func pingPodman(ctx context.Context, cli *client.Client) (string, error) {
	res, err := request(ctx, cli, http.MethodGet, engineURL(cli, "/_ping"), 1<<10)
	if err != nil {
		return "", err
	}
	version := res.header.Get("Libpod-Api-Version")
	if res.code != http.StatusOK || version == "" {
		return "", fmt.Errorf("it says %s", res.status)
	}
	return version, nil
}

// podmanConf is what hosts need on which Podman's own defaults fail: no
// systemd, cgroups of both versions at once, file limits that cannot be
// raised. Elsewhere it changes nothing.
func podmanConf() []byte {
	var b strings.Builder
	files, procs := hardLimits()
	fmt.Fprintf(&b, "[containers]\ndefault_ulimits = [\"nofile=%d:%d\", \"nproc=%d:%d\"]\n", files, files, procs, procs)
	b.WriteString("[engine]\n")
	if _, err := os.Stat("/run/systemd/system"); err != nil {
		b.WriteString("cgroup_manager = \"cgroupfs\"\nevents_logger = \"file\"\n")
	}
	// crun refuses hybrid cgroups; runc takes them.
	if _, err := os.Stat("/sys/fs/cgroup/cgroup.controllers"); err != nil {
		if _, err := exec.LookPath("runc"); err == nil {
			b.WriteString("runtime = \"runc\"\n")
		}
	}
	return []byte(b.String())
}
