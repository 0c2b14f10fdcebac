package sandbox

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/docker/docker/client"
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

// maxSocketPath is the longest path of a unix socket (unix(7)).
const maxSocketPath = 107

func startPodman(ctx context.Context) (_ *Engine, err error) {
	path, err := exec.LookPath("podman")
	if err != nil {
		return nil, errors.New("podman: it is not installed (apt-get install podman runc)")
	}
	dir, err := makeDir()
	if err != nil {
		return nil, fmt.Errorf("podman: %w", err)
	}
	defer func() {
		if err != nil {
			_ = os.RemoveAll(dir)
		}
	}()
	socket := filepath.Join(dir, "s") // its path may not be long
	if len(socket) > maxSocketPath {
		return nil, fmt.Errorf("podman: the path of its service's socket, %s, is longer than %d bytes, which no socket's may be; set TMPDIR to a shorter directory", socket, maxSocketPath)
	}
	cmd := exec.Command(path, "system", "service", "--time", strconv.Itoa(int(serviceGrace.Seconds())), "unix://"+socket) //nolint:gosec,noctx // ended by stop
	// A service, and not the client of one that these would name; and not in a
	// directory that may have been removed.
	cmd.Env = slices.DeleteFunc(os.Environ(), func(pair string) bool {
		return strings.HasPrefix(pair, "CONTAINER_HOST=") || strings.HasPrefix(pair, "CONTAINER_CONNECTION=")
	})
	cmd.Dir = "/"
	if os.Getenv("CONTAINERS_CONF") == "" {
		conf := filepath.Join(dir, "containers.conf")
		if err := os.WriteFile(conf, podmanConf(), 0o600); err != nil {
			return nil, fmt.Errorf("podman: %w", err)
		}
		cmd.Env = append(cmd.Env, "CONTAINERS_CONF="+conf)
	}
	logs := &tail{}
	cmd.Stderr = logs
	// The service ends with us, and a Ctrl-C on our terminal is not for it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM, Setpgid: true}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("podman: %w", err)
	}
	s := &podmanService{cmd: cmd, done: make(chan struct{})}
	go func() { _ = cmd.Wait(); close(s.done) }()
	deadline := time.NewTimer(15 * time.Second)
	defer deadline.Stop()
	for {
		if _, statErr := os.Stat(socket); statErr == nil {
			if e, connectErr := connectOwn(ctx, "unix://"+socket); connectErr == nil {
				e.service, e.dir = s, dir
				if s.held, err = holdService(ctx, socket); err != nil {
					e.Close()
					return nil, fmt.Errorf("podman: its service does not answer: %w", err)
				}
				return e, nil
			}
		}
		select {
		case <-time.After(20 * time.Millisecond):
			continue
		case <-s.done:
			return nil, fmt.Errorf("podman: its service ended: %s", logs)
		case <-deadline.C:
			s.stop()
			return nil, fmt.Errorf("podman: its service does not answer: %s", logs)
		case <-ctx.Done():
			s.stop()
			return nil, ctx.Err()
		}
	}
}

// Service names the process that Find has started, for ServiceLives in another
// process; "" where it started none.
func (e *Engine) Service() string {
	if e.service == nil {
		return ""
	}
	name, err := ownerOf(e.service.cmd.Process.Pid)
	if err != nil { // it has ended
		return ""
	}
	return name
}

// ServiceLives tells whether a process that Service has named still lives.
func ServiceLives(name string) bool { return ownerLives(name) }

// holdService begins a request that never comes to its end: what gives a
// service its grace also ends it when nobody has asked for anything as long,
// and a person may think for longer than that about a passphrase.
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

// stop ends the service when nothing of ours is under way: who still waits for
// an engine that hangs does not wait for its grace, and the warden tidies up.
func (s *podmanService) stop() {
	if s.held != nil {
		_ = s.held.Close()
	}
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-s.done:
	case <-time.After(5 * time.Second):
		_ = s.cmd.Process.Kill()
		<-s.done
	}
}

// tail keeps the end of what a program says.
type tail struct {
	mu   sync.Mutex
	text []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p...)
	t.text = t.text[max(0, len(t.text)-2000):]
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.Join(strings.Fields(string(t.text)), " ")
}

// podmanConf is what hosts need on which Podman's own defaults fail: no
// systemd, cgroups of both versions at once, file limits that cannot be
// raised. Elsewhere it changes nothing.
func podmanConf() []byte {
	var b strings.Builder
	files, procs := hardLimits()
	fmt.Fprintf(&b, "[containers]\ndefault_ulimits = [\"nofile=%d:%d\", \"nproc=%d:%d\"]\n[engine]\n", files, files, procs, procs)
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

// connectOwn is connect for a Podman service that we started: it is Podman, of
// this host. Asked for its version, Podman first asks the host's package
// manager for that of each of its programs, which takes longer than a box's
// start.
func connectOwn(ctx context.Context, host string) (*Engine, error) {
	cli, err := client.NewClientWithOpts(client.WithHost(host), client.WithAPIVersionNegotiation())
	if err != nil {
		return nil, fmt.Errorf("podman: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	version, err := pingPodman(ctx, cli)
	if err != nil {
		_ = cli.Close()
		return nil, fmt.Errorf("podman: its service does not answer: %w", err)
	}
	cli.NegotiateAPIVersion(ctx)
	return &Engine{kind: "podman", version: version, arch: runtime.GOARCH, cli: cli}, nil
}

// pingPodman gives the version that stands in an answer's head.
func pingPodman(ctx context.Context, cli *client.Client) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://podman/_ping", nil)
	if err != nil {
		return "", err
	}
	res, err := cli.HTTPClient().Do(req)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	version := res.Header.Get("Libpod-Api-Version")
	if res.StatusCode != http.StatusOK || version == "" {
		return "", fmt.Errorf("it says %s", res.Status)
	}
	return version, nil
}
