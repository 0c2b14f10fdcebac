package seal

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/e2e/harness"
	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/e2e/recipes"
)

// rootless is a person without rights, whose engine is his own.
func rootless(t *testing.T, engine string) *person {
	t.Helper()
	var needs []string
	if engine == "docker" {
		needs = []string{"dockerd", "rootlesskit"}
	}
	dir := must.OpenDir(t)
	as := harness.Rootless(t, dir, needs...)
	if engine == "docker" {
		startDocker(t, dir, as)
		as = append(as, "env", "DOCKER_HOST=unix://"+filepath.Join(dir, "run/docker.sock"))
	}
	p := newPerson(t, engine, harness.RootlessUser, dir, as...)
	recipes.Need(t, "podman", recipes.Base())
	harness.HandOver(t, []string{image}, engine, p.as...)
	t.Cleanup(func() { // the gateway's image was made here, and Podman 4 keeps a copy of an archive that it imports
		if left, err := filepath.Glob(filepath.Join(dir, "tmp", "api_*")); err != nil || len(left) > 0 {
			t.Errorf("among the user's temporary files are %v, %v; want nothing of the engine's API", left, err)
		}
	})
	return p
}

// startDocker runs a daemon of the user's until the test ends.
func startDocker(t *testing.T, dir string, as []string) {
	t.Helper()
	script := must.Get(filepath.Abs("testdata/dockerd.sh"))(t)
	words := append(append([]string{}, as...), script)
	daemon := exec.Command(words[0], words[1:]...)
	var said bytes.Buffer
	daemon.Stdout, daemon.Stderr = &said, &said
	daemon.WaitDelay = time.Minute // what it started may hold its output open
	must.Do(t, daemon.Start())
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
