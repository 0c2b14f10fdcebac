package faults

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/e2e/harness"
	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/e2e/recipes"
)

// engineEnv is the environment for both engines: settings that Podman needs
// on special machines, and a daemon of Docker's that may be killed.
func engineEnv() []string {
	return append(os.Environ(), "CONTAINERS_CONF="+podmanConf(), "DOCKER_HOST=unix://"+docker.socket())
}

var podmanConf = sync.OnceValue(func() string {
	if conf := os.Getenv("CONTAINERS_CONF"); conf != "" {
		return conf
	}
	text := "[containers]\ndefault_ulimits = [\"nofile=4096:4096\", \"nproc=4096:4096\"]\n[engine]\nevents_logger = " +
		"\"file\"\n"
	if _, err := os.Stat("/run/systemd/system"); err != nil {
		text += "cgroup_manager = \"cgroupfs\"\n"
	}
	if _, err := os.Stat("/sys/fs/cgroup/cgroup.controllers"); err != nil {
		text += "runtime = \"runc\"\n" // crun refuses cgroups of both versions
	}
	conf := filepath.Join(filepath.Dir(binary), "containers.conf")
	if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
		panic(err)
	}
	return conf
})

// baseImage is aileron's own image on Podman, built if it is missing.
var baseImage = sync.OnceValues(func() (string, error) {
	cmd := exec.Command(binary, "sandbox", "build", "--sandbox=podman", "--if-missing")
	cmd.Env = append(engineEnv(), "AILERON_HOME="+filepath.Join(filepath.Dir(binary), "builder"))
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("build the base image: %w\n%s", err, &errs)
	}
	return strings.TrimSpace(string(out)), nil
})

func needPodman(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("podman"); err != nil {
		harness.Need(t, "podman: scripts/prepare installs it")
	}
	recipes.Need(t, "podman", recipes.Base())
	if _, err := baseImage(); err != nil {
		t.Fatal(err)
	}
}

// daemon is a Docker daemon of these tests' own: killing one must not be felt
// by anybody else.
type daemon struct {
	once sync.Once
	dir  string
	err  error

	mu    sync.Mutex
	cmd   *exec.Cmd
	ended chan struct{}
}

var docker daemon

func (d *daemon) socket() string { return filepath.Join(filepath.Dir(binary), "docker", "d.sock") }

// need makes sure that the daemon runs and has the base image.
func (d *daemon) need(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("dockerd"); err != nil || os.Geteuid() != 0 {
		harness.Need(t, "root and a Docker daemon of its own: scripts/prepare --tests installs it")
	}
	needPodman(t) // the image comes from there
	d.once.Do(func() {
		d.dir = filepath.Dir(d.socket())
		if d.err = os.Mkdir(d.dir, 0o700); d.err != nil {
			return
		}
		if d.err = d.start(); d.err != nil {
			return
		}
		image, err := baseImage()
		if err != nil {
			d.err = err
			return
		}
		load := exec.Command("sh", "-c", `podman save --quiet "$1" | docker load --quiet`, "sh", image)
		load.Env = engineEnv()
		if out, err := load.CombinedOutput(); err != nil {
			d.err = fmt.Errorf("give Docker the base image: %w\n%s", err, out)
		}
	})
	if d.err != nil {
		t.Fatal(d.err)
	}
}

func (d *daemon) start() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	log, err := os.OpenFile(filepath.Join(d.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	conf := filepath.Join(d.dir, "daemon.json") // and not the machine's
	settings, err := d.heldRuntime()
	if err != nil {
		return err
	}
	if err := os.WriteFile(conf, []byte(settings), 0o600); err != nil {
		return err
	}
	_ = os.Remove(filepath.Join(d.dir, "pid")) // of a killed one
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err != nil {
		return err
	}
	// Programs that die with it, and no network: boxes have none.
	d.cmd = exec.Command("dockerd", "--data-root", filepath.Join(d.dir, "data"), "--exec-root",
		filepath.Join(d.dir, "exec"),
		"--pidfile", filepath.Join(d.dir, "pid"), "--host", "unix://"+d.socket(), "--config-file", conf,
		"--default-ulimit", fmt.Sprintf("nofile=%d:%d", files.Max, files.Max), "--iptables=false", "--ip6tables=false",
		"--bridge=none")
	// Its containerd writes its stacks there when it is slow to answer.
	d.cmd.Env = append(os.Environ(), "TMPDIR="+d.dir)
	d.cmd.Stdout, d.cmd.Stderr = log, log
	d.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := d.cmd.Start(); err != nil {
		return err
	}
	d.ended = make(chan struct{})
	go func(cmd *exec.Cmd, ended chan struct{}) { _ = cmd.Wait(); close(ended) }(d.cmd, d.ended)
	answers, ended := false, false
	harness.Poll(patience, 50*time.Millisecond, func() bool {
		ask := exec.Command("docker", "version", "--format", "{{.Server.Version}}")
		ask.Env = engineEnv()
		answers = ask.Run() == nil
		select {
		case <-d.ended:
			ended = true
		default:
		}
		return answers || ended
	})
	switch {
	case answers:
		return nil
	case ended:
		said, _ := os.ReadFile(filepath.Join(d.dir, "log"))
		return fmt.Errorf("dockerd ended: %s", said[max(0, len(said)-1000):])
	}
	return errors.New("dockerd does not answer")
}

// kill kills the daemon, which has no chance to end its containers.
func (d *daemon) kill() {
	d.mu.Lock()
	defer d.mu.Unlock()
	_ = d.cmd.Process.Kill()
	<-d.ended
	// Its containerd goes with it. A new daemon believes in the file of one
	// that has not ended yet.
	file := filepath.Join(d.dir, "exec", "containerd", "containerd.pid")
	data, _ := os.ReadFile(file)
	if pid, err := strconv.Atoi(strings.TrimSpace(string(data))); err == nil {
		harness.Poll(patience, 10*time.Millisecond, func() bool { return startOf(pid) == "" })
	}
	_ = os.Remove(file)
}

func (d *daemon) close() {
	if d.cmd == nil {
		return
	}
	_ = d.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-d.ended:
	case <-time.After(patience):
		_ = d.cmd.Process.Kill()
		<-d.ended
	}
	d.killShims()
	for syscall.Unmount(filepath.Join(d.dir, "data"), 0) == nil { // killed ones leave it
		continue
	}
	_ = os.RemoveAll(d.dir)
}

// killShims kills the shims of containers that a daemon was about to create when it was killed: no later one knows
// them.
func (d *daemon) killShims() {
	lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, line := range lines {
		args, _ := os.ReadFile(line)
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(line)))
		if err == nil && strings.Contains(string(args), "containerd-shim") && strings.Contains(string(args), d.dir+"/") {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

// ownService skips a test where Podman's own socket is open: aileron then has
// no service of its own to lose.
func ownService(t *testing.T) {
	t.Helper()
	if _, err := os.Stat("/run/podman/podman.sock"); err == nil || os.Getenv("CONTAINER_HOST") != "" {
		t.Skip("an engine that runs here already needs no service of ours")
	}
}

func TestAKilledPodmanServiceEndsTheBoxAndLeavesNothing(t *testing.T) {
	ownService(t)
	t.Parallel()
	u := newUser(t, "podman")
	r := u.start("curl -s https://api.echo.example/stall")
	harness.WaitFor(t, "an exchange", func() bool { return len(u.origin.Seen()) == 1 })
	kill(t, r.child("service"), syscall.SIGKILL)
	r.fails("service of podman", "killed")
	r.closed(1, "service of podman")
	r.nothing()
	if n := len(u.rows("--event", "connector.proxy.started")); n != 1 {
		t.Errorf("%d rows of intent, want one", n)
	}
}

// What asks for the end is the kernel's and not the engine's affair then, and
// another service takes away what is left.
func TestARemovedPodmanSocketKeepsNothingAlive(t *testing.T) {
	ownService(t)
	t.Parallel()
	u := newUser(t, "podman")
	r := u.start(catches42 + "while :; do sleep 0.1; done")
	sockets, _ := filepath.Glob(filepath.Join(os.TempDir(), fmt.Sprintf("aileron-engine-%d-*/s", r.cmd.Process.Pid)))
	if len(sockets) != 1 {
		t.Fatalf("the service's socket: %v", sockets)
	}
	must.Do(t, os.Remove(sockets[0]))
	r.signal(syscall.SIGTERM)
	if res := r.end(); res.code != 42 {
		t.Errorf("exit %d: %s", res.code, res.err)
	}
	r.nothing()
}

// It is stopped with the lock of a container, where that can be had: then no
// other service removes it while this one lives.
func TestAServiceThatHangsDoesNotKeepTheBox(t *testing.T) {
	ownService(t)
	t.Parallel()
	u := newUser(t, "podman")
	r := u.start(catches42 + "while :; do sleep 0.1; done")
	service := r.child("service")
	locked := false
	for range 60 {
		kill(t, service, syscall.SIGSTOP)
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		ask := exec.CommandContext(ctx, "podman", "inspect", r.name("box"), r.name("gw"))
		ask.Env = engineEnv()
		locked = ask.Run() != nil
		cancel()
		if locked {
			break
		}
		kill(t, service, syscall.SIGCONT)
	}
	if !locked {
		kill(t, service, syscall.SIGSTOP)
	}
	t.Logf("it holds a lock: %v", locked)
	r.signal(syscall.SIGTERM)
	r.fails("podman does not respond")
	r.closed(1, "podman does not respond")
	r.nothing()
}

// The containers of a killed Docker daemon live on under their shims. These
// tests are not parallel: all others need the daemon.
func TestAKilledDockerDaemonEndsTheBox(t *testing.T) {
	for name, warden := range map[string]bool{"the warden removes the rest": true,
		"the next session removes the rest": false} {
		t.Run(name, func(t *testing.T) {
			u := newUser(t, "docker")
			r := u.start("curl -s https://api.echo.example/stall")
			harness.WaitFor(t, "an exchange", func() bool { return len(u.origin.Seen()) == 1 })
			ward := r.child("warden")
			if !warden {
				kill(t, ward, syscall.SIGKILL)
			}
			docker.kill()
			r.fails("docker does not respond on its socket", "start docker again")
			if r.box.lives() || r.gateway.lives() {
				t.Error("the box or its gateway still runs, and nothing looks after it")
			}
			r.closed(1, "docker does not respond")
			must.Do(t, docker.start())
			if warden {
				harness.WaitFor(t, "the warden ends", func() bool { return !ward.lives() })
			} else {
				if u.left() == "" {
					t.Error("nothing was left, so nothing is tried here")
				}
				u.must(u.boxArgs("true")...)
			}
			r.nothing()
		})
	}
}

func TestARemovedDockerSocketKeepsNothingAlive(t *testing.T) {
	u := newUser(t, "docker")
	r := u.start(catches42 + "while :; do sleep 0.1; done")
	must.Do(t, os.Remove(docker.socket()))
	r.signal(syscall.SIGTERM)
	res := r.end()
	if res.code != 42 && !strings.Contains(res.err, "docker does not respond on its socket") {
		t.Errorf("exit %d: %s", res.code, res.err)
	}
	if r.box.lives() {
		t.Error("the box still runs")
	}
	docker.kill()
	must.Do(t, docker.start())
	u.must(u.boxArgs("true")...)
	harness.WaitFor(t, "the warden ends", func() bool { return !strings.Contains(u.left(), "process") })
	r.nothing()
}

// What is not there is said before anything is made.
func TestAnEngineThatIsNotThereIsNamed(t *testing.T) {
	u := newUser(t, "docker")
	docker.kill()
	r := u.run(u.boxArgs("true")...)
	must.Do(t, docker.start())
	if r.code != 1 || !strings.Contains(r.err, "docker") || !isFailure(r.err) {
		t.Errorf("exit %d: %q", r.code, r.err)
	}
	if left := u.left(); left != "" {
		t.Errorf("left: %s", left)
	}
}
