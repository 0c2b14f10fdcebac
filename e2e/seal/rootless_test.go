package seal

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/e2e/harness"
	"github.com/ALRubinger/aileron/e2e/recipes"
)

// rootlessUser is an ID without a user on this machine; testdata/rootless.sh
// creates the user for the processes that it starts.
const rootlessUser = 61234

// rootless is a person without rights, whose engine is his own.
func rootless(t *testing.T, engine string) *person {
	t.Helper()
	needs := []string{engine, "podman", "newuidmap", "unshare", "setpriv"}
	if engine == "docker" {
		needs = append(needs, "dockerd", "rootlesskit")
	}
	for _, program := range needs {
		if _, err := exec.LookPath(program); err != nil {
			if os.Getenv("CI") != "" {
				t.Fatalf("there is no %s, and in CI the seal must be tried without root; scripts/prepare --tests installs it",
					program)
			}
			t.Skipf("there is no %s: scripts/prepare --tests installs it", program)
		}
	}
	dir := shortDir(t)
	script, err := filepath.Abs("testdata/rootless.sh")
	if err != nil {
		t.Fatal(err)
	}
	as := []string{script, dir, strconv.Itoa(rootlessUser)}
	if engine == "docker" {
		startDocker(t, dir, as)
		as = append(as, "env", "DOCKER_HOST=unix://"+filepath.Join(dir, "run/docker.sock"))
	} else {
		t.Cleanup(func() { endPause(t, dir) }) // before its files go
	}
	p := newPerson(t, engine, rootlessUser, dir, as...)
	p.handOver()
	return p
}

// handOver loads the base image of this machine's Podman into the person's engine.
func (p *person) handOver() {
	p.t.Helper()
	recipes.Need(p.t, "podman", recipes.Base())
	words := append(append([]string{}, p.as...), p.engine, "load", "--quiet")
	save, load := exec.Command("podman", "save", "--quiet", image), exec.Command(words[0], words[1:]...)
	var saveErrs, loadErrs bytes.Buffer
	save.Stderr, load.Stderr = &saveErrs, &loadErrs
	pipe, err := save.StdoutPipe()
	if err != nil {
		p.t.Fatal(err)
	}
	load.Stdin = pipe
	if err := save.Start(); err != nil {
		p.t.Fatal(err)
	}
	loadErr := load.Run()
	if err := save.Wait(); err != nil || loadErr != nil {
		p.t.Fatalf("hand the image over: %v, %v\n%s%s", err, loadErr, &saveErrs, &loadErrs)
	}
}

// startDocker runs a daemon of the user's until the test ends.
func startDocker(t *testing.T, dir string, as []string) {
	t.Helper()
	script, err := filepath.Abs("testdata/dockerd.sh")
	if err != nil {
		t.Fatal(err)
	}
	words := append(append([]string{}, as...), script)
	daemon := exec.Command(words[0], words[1:]...)
	var said bytes.Buffer
	daemon.Stdout, daemon.Stderr = &said, &said
	daemon.WaitDelay = time.Minute // what it started may hold its output open
	if err := daemon.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { defer close(ended); _ = daemon.Wait() }()
	t.Cleanup(func() {
		_ = daemon.Process.Signal(syscall.SIGTERM)
		select {
		case <-ended:
		case <-time.After(harness.Patience):
			_ = daemon.Process.Kill() // with it goes its namespace of processes
			<-ended
		}
	})
	harness.WaitFor(t, "the user's Docker daemon answers", func() bool {
		select {
		case <-ended:
			t.Fatalf("the user's Docker daemon ended:\n%s", said.String())
		default:
		}
		version := exec.Command("docker", "-H", "unix://"+filepath.Join(dir, "run/docker.sock"), "version")
		return version.Run() == nil
	})
}

// endPause ends the process with which Podman keeps the user's namespaces.
func endPause(t *testing.T, dir string) {
	data, err := os.ReadFile(filepath.Join(dir, "run/libpod/tmp/pause.pid"))
	if err != nil {
		return
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil {
		t.Error(err)
		return
	}
	var st syscall.Stat_t
	if err := syscall.Stat("/proc/"+strconv.Itoa(pid), &st); err == nil && st.Uid == rootlessUser {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}
