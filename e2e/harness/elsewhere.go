package harness

import (
	"bytes"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/sandbox/gateway"
)

// ElsewhereDocker starts a daemon of Docker's in mount, network and process namespaces of its own, as Docker Desktop is
// in a virtual machine: of this machine it sees its programs and the shared directories, and of it nothing is seen but
// its API, at a port that DOCKER_HOST names until the test ends. Its kernel is this one, which a virtual machine's is
// not. It needs root.
func ElsewhereDocker(t *testing.T, shared ...string) {
	t.Helper()
	if _, err := exec.LookPath("dockerd"); err != nil || os.Geteuid() != 0 {
		Need(t, "root and a dockerd of its own (scripts/prepare --tests)")
	}
	dir := must.Get(os.MkdirTemp("/var/tmp", "elsewhere-docker-"))(t)
	door := filepath.Join(dir, "door")
	for _, name := range []string{"door", "engine", "keep"} {
		must.Do(t, os.Mkdir(filepath.Join(dir, name), 0o755))
	}
	must.Do(t, os.WriteFile(door+"/daemon.json", []byte("{}"), 0o600))
	const script = `set -eu
dir=$1; shift
mount --make-rprivate /
mount -t proc none /proc
mount -t tmpfs none "$dir/engine"
mount -t tmpfs none "$dir/keep"
n=0
for shared; do n=$((n + 1)); mkdir "$dir/keep/$n"; mount --bind "$shared" "$dir/keep/$n"; done
for hidden in /tmp /home /root; do mount -t tmpfs none "$hidden"; done
n=0
for shared; do n=$((n + 1)); mkdir -p "$shared"; mount --bind "$dir/keep/$n" "$shared"; done
cd /
export TMPDIR="$dir/engine"
exec dockerd --data-root "$dir/engine/root" --exec-root "$dir/engine/exec" --pidfile "$dir/engine/pid" \
	--host "unix://$dir/door/docker.sock" --config-file "$dir/door/daemon.json" \
	--iptables=false --ip6tables=false --ip-forward=false --bridge=none`
	log := &bytes.Buffer{}
	daemon := exec.Command("sh", append([]string{"-c", script, "elsewhere", dir}, shared...)...)
	kinds := uintptr(syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWNET)
	daemon.SysProcAttr = &syscall.SysProcAttr{Cloneflags: kinds}
	daemon.Stdout, daemon.Stderr = log, log
	must.Do(t, daemon.Start())
	ended := make(chan struct{})
	go func() { _ = daemon.Wait(); close(ended) }()
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	go forward(l, filepath.Join(door, "docker.sock"))
	t.Cleanup(func() {
		_ = l.Close()
		_ = daemon.Process.Signal(syscall.SIGTERM)
		<-ended // and with it its namespace of processes, and their mounts
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	t.Setenv("DOCKER_HOST", "tcp://"+l.Addr().String())
	WaitFor(t, "the daemon elsewhere answers", func() bool {
		select {
		case <-ended:
			t.Fatalf("dockerd ended: %s", log)
		default:
		}
		return exec.Command("docker", "version").Run() == nil
	})
}

// forward connects clients of a listener with a unix socket.
func forward(l net.Listener, socket string) {
	for {
		client, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			server, err := net.Dial("unix", socket)
			if err != nil {
				_ = client.Close()
				return
			}
			gateway.Join(client.(*net.TCPConn), server.(*net.UnixConn))
		}()
	}
}

// AileronsOf returns the names of the containers and the volumes of sessions that an engine has.
func AileronsOf(t *testing.T, engine string) string {
	t.Helper()
	var found []byte
	for _, args := range [][]string{{"ps", "-a", "--filter", "label=aileron.session", "--format", "{{.Names}}"},
		{"volume", "ls", "--filter", "label=aileron.session", "--format", "{{.Name}}"}} {
		out, err := exec.Command(engine, args...).Output()
		must.Do(t, err)
		found = append(found, out...)
	}
	return string(found)
}
