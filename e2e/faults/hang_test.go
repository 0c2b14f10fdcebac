package faults

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/e2e/harness"
	"github.com/ALRubinger/aileron/e2e/must"
)

// slow is an engine that passes on all calls to a real one, and one call only
// when it is told to.
type slow struct {
	socket, behind string
	call           string // a piece of its request line
	after          int32  // how many like it pass before
	met            atomic.Int32
	let            chan struct{} // closed: it passes
	passed         chan struct{} // closed when the engine has answered it
	over           chan struct{} // closed with the test
}

// newSlow stands in front of a person's engine.
func newSlow(t *testing.T, u *user, call string, after int32) *slow {
	t.Helper()
	s := &slow{socket: filepath.Join(filepath.Dir(u.home), "s"), behind: docker.socket(), call: call, after: after,
		let: make(chan struct{}), passed: make(chan struct{}), over: make(chan struct{})}
	name := "DOCKER_HOST"
	if u.engine == "podman" {
		name, s.behind = "CONTAINER_HOST", servePodman(t, filepath.Dir(u.home))
	}
	u.env = append(u.env, name+"=unix://"+s.socket)
	l := must.Get(net.Listen("unix", s.socket))(t)
	t.Cleanup(func() { _ = l.Close(); close(s.over) })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go s.serve(conn)
		}
	}()
	return s
}

// servePodman is a service of Podman's that is not aileron's.
func servePodman(t *testing.T, dir string) (socket string) {
	t.Helper()
	socket = filepath.Join(dir, "e")
	service := exec.Command("podman", "system", "service", "--time", "0", "unix://"+socket)
	service.Env = engineEnv()
	service.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	must.Do(t, service.Start())
	t.Cleanup(func() { _ = service.Process.Signal(syscall.SIGTERM); _ = service.Wait() })
	harness.WaitFor(t, "Podman's service listens", func() bool {
		conn, err := net.Dial("unix", socket)
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	})
	return socket
}

// serve passes on a connection. A client's request begins where it has read
// the answer to the last one, so a piece holds no more than one beginning.
func (s *slow) serve(client net.Conn) {
	defer client.Close()
	engine, err := net.Dial("unix", s.behind)
	if err != nil {
		return
	}
	defer engine.Close()
	held := make(chan struct{})
	go func(held <-chan struct{}) {
		answer := make([]byte, 64<<10)
		for {
			n, err := engine.Read(answer)
			select {
			case <-held:
				close(s.passed)
				held = nil
			default:
			}
			if _, to := client.Write(answer[:n]); err != nil || to != nil {
				_ = client.Close()
				return
			}
		}
	}(held)
	piece := make([]byte, 64<<10)
	for {
		n, err := client.Read(piece)
		line, _, _ := strings.Cut(string(piece[:n]), "\r\n")
		if strings.HasPrefix(line, "POST ") && strings.Contains(line, s.call) && s.met.Add(1) == s.after+1 {
			select {
			case <-s.let:
			case <-s.over:
				return
			}
			close(held)
			defer func() { <-s.passed }() // the engine does it, and its answer may have no reader
		}
		if n > 0 {
			if _, err := engine.Write(piece[:n]); err != nil {
				return
			}
		}
		if err != nil {
			if half, ok := engine.(*net.UnixConn); ok && errors.Is(err, io.EOF) {
				_ = half.CloseWrite()
				_, _ = io.Copy(io.Discard, client)
			}
			return
		}
	}
}

// interrupted wants the end that a Ctrl-C makes before a command has begun.
func (r *running) interrupted() {
	r.u.t.Helper()
	if res := r.end(); res.code != 130 || res.out != "" || res.err != "aileron: interrupted\n" {
		r.u.t.Errorf("exit %d with %q and %q, want 130", res.code, res.out, res.err)
	}
	var codes []any
	for _, ended := range r.u.rows("--event", "session.ended") {
		fields, _ := ended["fields"].(map[string]any)
		codes = append(codes, fields["exit_code"])
	}
	if len(codes) != 1 || codes[0] != 130.0 {
		r.u.t.Errorf("session.ended has the exit codes %v, want 130 once", codes)
	}
	r.nothing()
	if left := r.u.looking(map[string]bool{fmt.Sprintf("%d/%s", r.self.pid, r.self.start): true}); len(left) > 0 {
		r.u.t.Errorf("left: %v", left)
	}
}

// An engine that takes a call and never answers does not keep the person waiting.
func TestCtrlCEndsAStartInWhichTheEngineHangs(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, call string
		after      int32
	}{
		{"the making of a look into the image", "/containers/create?name=aileron-none-", 0},
		{"the making of the gateway", "-gw ", 0},
		{"the making of the box", "-box ", 0},
		{"attaching to the gateway", "/attach?", 0},
		{"attaching to the box", "/attach?", 1},
		{"the gateway's start", "/start ", 0},
		{"the box's start", "/start ", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			engines(t, func(t *testing.T, u *user) {
				s := newSlow(t, u, c.call, c.after)
				r := u.begin(u.boxArgs("echo up")...)
				harness.WaitFor(t, "the engine hangs", func() bool {
					if res, ended := r.over(); ended {
						t.Fatalf("it ended with %d: %s", res.code, res.err)
					}
					return s.met.Load() > c.after
				})
				r.signal(syscall.SIGINT)
				r.interrupted()
			})
		})
	}
}

// What an engine makes after it was asked to stop waiting is not left to the
// next session.
func TestCtrlCLeavesNothingThatTheEngineMakesLate(t *testing.T) {
	t.Parallel()
	for name, call := range map[string]string{
		"a look into the image": "/containers/create?name=aileron-none-",
		"the gateway":           "-gw ",
		"the box":               "-box ",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			engines(t, func(t *testing.T, u *user) {
				s := newSlow(t, u, call, 0)
				r := u.begin(u.boxArgs("echo up")...)
				harness.WaitFor(t, "the engine takes its time", func() bool { return s.met.Load() > 0 })
				r.signal(syscall.SIGINT)
				time.AfterFunc(time.Second, func() { close(s.let) }) // its time
				harness.WaitFor(t, "the engine has made it", func() bool {
					select {
					case <-s.passed:
						return true
					default:
						return false
					}
				})
				r.interrupted()
			})
		})
	}
}

// A signal that comes while the engine starts the command is the command's.
func TestASignalDuringASlowStartIsTheCommands(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, u *user) {
		s := newSlow(t, u, "/start ", 1)
		r := u.begin(u.boxArgs("trap 'exit 42' TERM; while :; do sleep 0.1; done")...)
		harness.WaitFor(t, "the engine takes its time", func() bool { return s.met.Load() > 1 })
		r.signal(syscall.SIGTERM)
		close(s.let)
		if res := r.end(); res.code != 42 && res.code != 143 {
			t.Errorf("exit %d, want the command's own: %s", res.code, res.err)
		}
		r.nothing()
	})
}
