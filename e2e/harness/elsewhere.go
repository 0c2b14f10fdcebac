package harness

import (
	"bytes"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/sandbox/gateway"
)

// Elsewhere is an engine in mount, network and process namespaces of its own, as Docker Desktop and podman machine are
// in a virtual machine. Its kernel is this one, which a virtual machine's is not.
type Elsewhere struct {
	Engine  string // podman, or docker
	Address string // of its API, tcp://…
}

// elsewhereScript makes what an engine sees of this machine, and is the engine: its programs, and shared directories.
// Of its own files this machine sees its socket alone.
const elsewhereScript = `set -eu
engine=$1 dir=$2; shift 2
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
socket="unix://$dir/door/api.sock"
if [ "$engine" = podman ]; then
	export CONTAINERS_CONF="$dir/door/containers.conf"
	exec podman --root "$dir/engine/root" --runroot "$dir/engine/run" system service --time 0 "$socket"
fi
exec dockerd --data-root "$dir/engine/root" --exec-root "$dir/engine/exec" --pidfile "$dir/engine/pid" \
	--host "$socket" --config-file "$dir/door/daemon.json" \
	--iptables=false --ip6tables=false --ip-forward=false --bridge=none`

// StartElsewhere starts an engine that sees the shared directories of this machine. Until the test ends, DOCKER_HOST or
// CONTAINER_HOST names its API, which is all that is seen of it. It needs root.
func StartElsewhere(t *testing.T, engine string, shared ...string) Elsewhere {
	t.Helper()
	if _, err := exec.LookPath("dockerd"); engine == "docker" && err != nil || os.Geteuid() != 0 {
		Need(t, "root and a dockerd of its own (scripts/prepare --tests)")
	}
	dir := must.Get(os.MkdirTemp("/var/tmp", "elsewhere-"))(t)
	door := filepath.Join(dir, "door")
	for _, name := range []string{"door", "engine", "keep"} {
		must.Do(t, os.Mkdir(filepath.Join(dir, name), 0o755))
	}
	must.Do(t, os.WriteFile(door+"/daemon.json", []byte("{}"), 0o600))
	must.Do(t, os.WriteFile(door+"/containers.conf", []byte(PodmanConf()), 0o600))
	log := &bytes.Buffer{}
	daemon := exec.Command("sh", append([]string{"-c", elsewhereScript, "elsewhere", engine, dir}, shared...)...)
	kinds := uintptr(syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWNET)
	daemon.SysProcAttr = &syscall.SysProcAttr{Cloneflags: kinds}
	daemon.Stdout, daemon.Stderr = log, log
	must.Do(t, daemon.Start())
	ended := make(chan struct{})
	go func() { _ = daemon.Wait(); close(ended) }()
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	go forward(l, filepath.Join(door, "api.sock"))
	t.Cleanup(func() {
		_ = l.Close()
		_ = daemon.Process.Kill() // and with it its namespace of processes, and their mounts
		<-ended
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	e := Elsewhere{Engine: engine, Address: "tcp://" + l.Addr().String()}
	t.Setenv(map[string]string{"docker": "DOCKER_HOST", "podman": "CONTAINER_HOST"}[engine], e.Address)
	WaitFor(t, "the engine elsewhere answers", func() bool {
		select {
		case <-ended:
			t.Fatalf("%s ended: %s", engine, log)
		default:
		}
		return exec.Command(engine, e.words("version")...).Run() == nil
	})
	return e
}

// words are the arguments of the engine's own command line.
func (e Elsewhere) words(args ...string) []string {
	if e.Engine == "podman" {
		return append([]string{"--url", e.Address}, args...)
	}
	return args
}

// Ask runs the engine's own command line, and returns what it prints.
func (e Elsewhere) Ask(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.Command(e.Engine, e.words(args...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", e.Engine, strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// HandOver loads images of this machine's Podman into the engine.
func (e Elsewhere) HandOver(t *testing.T, images ...string) {
	t.Helper()
	save := "env -u CONTAINER_HOST podman save --quiet --multi-image-archive " + strings.Join(images, " ")
	script := "set -o pipefail; " + save + ` | "$@"`
	cmd := exec.Command("bash", append([]string{"-c", script, "-", e.Engine}, e.words("load", "--quiet")...)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("hand %v over: %v\n%s", images, err, out)
	}
}

// Left returns the names of the containers and the volumes of sessions that the engine has.
func (e Elsewhere) Left(t *testing.T) string {
	t.Helper()
	return strings.TrimSpace(e.Ask(t, "ps", "-a", "--filter", "label=aileron.session", "--format", "{{.Names}}") + " " +
		e.Ask(t, "volume", "ls", "--filter", "label=aileron.session", "--format", "{{.Name}}"))
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
