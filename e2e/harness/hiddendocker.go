package harness

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
)

// HiddenDocker starts a daemon of Docker's that sees this machine but for one
// directory, and for those in which aileron has temporary files, for the commands
// that the test runs: its sandboxes cannot be sealed. It needs root and namespaces of
// its own for networks and mounts; see [TestApart].
func HiddenDocker(t *testing.T, hidden string) {
	t.Helper()
	dir := must.Get(os.MkdirTemp("/var/tmp", "hidden-docker-"))(t)
	temporary := filepath.Join(dir, "tmp")
	cache := filepath.Join(must.Get(os.UserCacheDir())(t), "aileron", "sandboxes")
	for _, unseen := range []string{hidden, temporary, cache} {
		must.Do(t, os.MkdirAll(unseen, 0o700))
	}
	t.Setenv("TMPDIR", temporary)
	const host = "tcp://127.0.0.1:2375"
	t.Setenv("DOCKER_HOST", host)
	log := &bytes.Buffer{}
	daemon := exec.Command("unshare", "--mount", "--propagation", "private", "sh", "-c",
		`for n in 1 2 3; do mount -t tmpfs none "$1" && shift || exit; done; exec dockerd "$@"`,
		"hide", hidden, temporary, cache,
		"--data-root", dir+"/root", "--exec-root", dir+"/exec", "--pidfile", dir+"/pid", "--host", host, "--config-file",
		dir+"/daemon.json",
		"--iptables=false", "--ip6tables=false", "--ip-forward=false", "--tls=false")
	daemon.Env = append(os.Environ(), "TMPDIR="+dir) // where its containerd writes its stacks when it is slow to answer
	daemon.Stdout, daemon.Stderr = log, log
	must.Do(t, errors.Join(os.WriteFile(dir+"/daemon.json", []byte("{}"), 0o600), daemon.Start()))
	ended := make(chan struct{})
	go func() { _ = daemon.Wait(); close(ended) }()
	t.Cleanup(func() {
		_ = daemon.Process.Signal(syscall.SIGTERM)
		<-ended
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	WaitFor(t, "the daemon answers", func() bool {
		select {
		case <-ended:
			t.Fatalf("dockerd ended: %s", log)
		default:
		}
		return exec.Command("docker", "version").Run() == nil
	})
}
