package native_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/ALRubinger/aileron/e2e/harness"
	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/sandbox/native"
)

// ordinary is the user that the sandboxes of these tests belong to, if root runs them. He has no right to anything.
const ordinary = 65533

// world is a user's project, and the sockets of a proxy that answers everything.
type world struct {
	t                *testing.T
	dir, project     string
	program, sockets string
	targets          chan string // of each CONNECT
	before           []string    // the words before the program
}

var built = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "native-test-")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "box")
	build := exec.Command("go", "build", "-o", path, "./testdata/box")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", errors.New(string(out))
	}
	return path, os.Chmod(dir, 0o755)
})

func TestMain(m *testing.M) {
	code := m.Run()
	if path, err := built(); err == nil {
		_ = os.RemoveAll(filepath.Dir(path))
	}
	os.Exit(code)
}

func newWorld(t *testing.T) *world {
	t.Helper()
	program := must.Get(built())(t)
	dir := must.OpenDir(t)
	w := &world{t: t, dir: dir, project: filepath.Join(dir, "p"), sockets: filepath.Join(dir, "s"),
		program: filepath.Join(dir, "box"), targets: make(chan string, 64)}
	must.Do(t, os.Mkdir(w.project, 0o755))
	must.Do(t, os.Mkdir(w.sockets, 0o755))
	must.Do(t, os.WriteFile(w.program, must.Get(os.ReadFile(program))(t), 0o755))
	w.listen("proxy.sock")
	w.listen("redirect.sock")
	if os.Geteuid() == 0 {
		for _, path := range []string{w.dir, w.project, w.program} {
			must.Do(t, os.Chown(path, ordinary, ordinary))
		}
	}
	return w
}

// listen serves a socket of the proxy: it notes the target of a CONNECT, and answers "hello".
func (w *world) listen(name string) {
	path := filepath.Join(w.sockets, name)
	l := must.Get(net.Listen("unix", path))(w.t)
	must.Do(w.t, os.Chmod(path, 0o666))
	w.t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				buf := make([]byte, 4096)
				n, _ := conn.Read(buf)
				target, _, _ := strings.Cut(strings.TrimPrefix(string(buf[:n]), "CONNECT "), " ")
				w.targets <- target
				_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\n\r\nhello")
			}()
		}
	}()
}

// command returns what runs a command in a sandbox of the world.
func (w *world) command(change func(*native.Config), command ...string) *exec.Cmd {
	w.t.Helper()
	c := native.Config{
		Session: filepath.Base(w.dir), Sockets: w.sockets, Owner: native.Owner{UID: ordinary, GID: ordinary},
		Seccomp: string(must.Get(os.ReadFile("../seccomp.json"))(w.t)),
		Command: command, Env: []string{"PATH=/usr/bin:/bin", "HOME=" + native.Home}, Dir: w.project, Processes: 4096,
		Mounts: []native.Mount{{Source: w.project, Target: w.project}},
		Files:  []native.File{{Path: "/etc/resolv.conf", Data: []byte("nameserver 127.0.0.53\n")}},
	}
	if change != nil {
		change(&c)
	}
	path := filepath.Join(w.dir, "config.json")
	must.Do(w.t, os.WriteFile(path, must.Get(json.Marshal(c))(w.t), 0o644))
	words := append(append([]string{}, w.before...), w.program, path)
	cmd := exec.Command(words[0], words[1:]...)
	cmd.Env, cmd.Dir = []string{"PATH=" + os.Getenv("PATH")}, "/"
	if os.Geteuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: ordinary, Gid: ordinary}}
	}
	return cmd
}

// sh runs a shell's script in a sandbox.
func (w *world) sh(script string, change func(*native.Config)) (out, errs string, code int) {
	w.t.Helper()
	return harness.Finish(w.t, w.command(change, "/bin/sh", "-c", script), harness.Patience)
}

func TestACommandReachesTheProxyAlone(t *testing.T) {
	w := newWorld(t)
	out, errs, code := w.sh(`exec 3<>/dev/tcp/192.0.2.1/22; echo x >&3; cat <&3`, func(c *native.Config) {
		c.Command[0] = "/bin/bash"
	})
	if code != 0 || out != "hello" {
		t.Fatalf("exit %d: %q, %s; want hello", code, out, errs)
	}
	if got := <-w.targets; got != "192.0.2.1:22" {
		t.Errorf("the proxy was asked for %q, want 192.0.2.1:22", got)
	}
	if len(w.targets) > 0 {
		t.Errorf("the proxy was asked for %q too: what the sandbox tries before must not reach it", <-w.targets)
	}
}

func TestTheExitIsTheCommands(t *testing.T) {
	w := newWorld(t)
	must.Do(t, os.WriteFile(filepath.Join(w.project, "text"), []byte("no program"), 0o644))
	for _, c := range []struct {
		script, out string
		code        int
	}{
		{"exit 0", "", 0}, {"exit 7", "", 7}, {"kill -TERM $$", "", 143}, {"kill -KILL $$", "", 137},
		{"pwd; id -u; cat", w.project + "\n" + strconv.Itoa(userOf(t)) + "\n", 0},
		{"sleep 300 & exit 3", "", 3}, // which ends with the sandbox
		{"exec /nonexistent/program", "", 127},
	} {
		out, errs, code := w.sh(c.script, nil)
		if code != c.code || out != c.out {
			t.Errorf("%s: exit %d, %q, %s; want %d and %q", c.script, code, out, errs, c.code, c.out)
		}
	}
	for program, want := range map[string]int{"/nonexistent/program": 127, "./text": 126, "/etc": 126} {
		_, errs, code := harness.Finish(t, w.command(nil, program), harness.Patience)
		if code != want || !strings.Contains(errs, "run "+program+" in the sandbox: ") {
			t.Errorf("%s: exit %d, %s; want %d", program, code, errs, want)
		}
	}
}

func userOf(t *testing.T) int {
	t.Helper()
	if uid := os.Geteuid(); uid != 0 {
		return uid
	}
	return ordinary
}

func TestSignalsAreTheCommands(t *testing.T) {
	w := newWorld(t)
	cmd := w.command(nil, "/bin/sh", "-c", `trap 'echo got it; exit 5' TERM; echo ready; while :; do sleep 0.05; done`)
	out := must.Get(cmd.StdoutPipe())(t)
	must.Do(t, cmd.Start())
	buf := make([]byte, 64)
	n, _ := out.Read(buf)
	_ = cmd.Process.Signal(syscall.SIGTERM)
	rest, _ := io.ReadAll(out)
	_ = cmd.Wait()
	if got := string(buf[:n]) + string(rest); got != "ready\ngot it\n" || cmd.ProcessState.ExitCode() != 5 {
		t.Errorf("exit %d, %q", cmd.ProcessState.ExitCode(), got)
	}
}

// having returns the processes of this machine with a word in their command lines.
func having(word string) (found []int) {
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		line, err := os.ReadFile(filepath.Join(dir, "cmdline"))
		if err == nil && bytes.Contains(line, []byte(word)) {
			pid, _ := strconv.Atoi(filepath.Base(dir))
			found = append(found, pid)
		}
	}
	return found
}

// Whichever of its processes is killed, all of a sandbox ends: what has left its process group too.
func TestNothingOutlivesAKilledProcess(t *testing.T) {
	for _, which := range []string{"aileron", "keeper", "init"} {
		t.Run(which, func(t *testing.T) {
			w := newWorld(t)
			mark := "mark-" + filepath.Base(w.dir)
			cmd := w.command(nil, "/bin/sh", "-c", `setsid sh -c 'trap "" HUP TERM; sleep 600; : '"$0" & sleep 600`, mark)
			must.Do(t, cmd.Start())
			harness.WaitFor(t, "the command and its child run", func() bool { return len(having(mark)) >= 3 })
			keeper := childOf(t, cmd.Process.Pid)
			pid := map[string]int{"aileron": cmd.Process.Pid, "keeper": keeper, "init": childOf(t, keeper)}[which]
			must.Do(t, syscall.Kill(pid, syscall.SIGKILL))
			_ = cmd.Wait()
			if code := cmd.ProcessState.ExitCode(); which != "aileron" && code != 137 {
				t.Errorf("it ended with %d, want 137", code)
			}
			harness.WaitFor(t, "all processes have ended", func() bool {
				return len(having(mark)) == 0 && !alive(keeper)
			})
		})
	}
}

func alive(pid int) bool { return syscall.Kill(pid, 0) == nil }

// childOf returns the only child of a process that is a sandbox's own.
func childOf(t *testing.T, pid int) int {
	t.Helper()
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, file := range tasks {
		data, _ := os.ReadFile(file)
		for field := range strings.FieldsSeq(string(data)) {
			child, err := strconv.Atoi(field)
			if err == nil {
				return child
			}
		}
	}
	t.Fatalf("process %d has no child", pid)
	return 0
}

func TestTheTerminalIsTheSandboxsOwn(t *testing.T) {
	w := newWorld(t)
	cmd := w.command(func(c *native.Config) { c.TTY = true }, "/bin/sh", "-c",
		`tty; [ -t 0 ] && [ -t 1 ] && [ -t 2 ] && echo terminal
		trap 'sleep 0.2; echo interrupted; exit 9' INT; echo ready >/dev/tty
		while :; do sleep 0.05; done`)
	in := must.Get(cmd.StdinPipe())(t)
	out := must.Get(cmd.StdoutPipe())(t)
	must.Do(t, cmd.Start())
	var said strings.Builder
	buf := make([]byte, 256)
	for !strings.Contains(said.String(), "ready") {
		n, err := out.Read(buf)
		if err != nil {
			break
		}
		said.Write(buf[:n])
	}
	_, _ = in.Write([]byte{3}) // Ctrl-C
	rest, _ := io.ReadAll(out)
	_ = cmd.Wait()
	got := said.String() + string(rest)
	for _, want := range []string{"/dev/pts/0\r\n", "terminal\r\n", "interrupted\r\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q lacks %q", got, want)
		}
	}
	if code := cmd.ProcessState.ExitCode(); code != 9 {
		t.Errorf("exit %d, want 9", code)
	}
}

// A file that the person gave as a stream is not the sandbox's to open again.
func TestStreamsAreNoFilesOfTheHost(t *testing.T) {
	w := newWorld(t)
	for _, name := range []string{"in", "out"} {
		must.Do(t, os.WriteFile(filepath.Join(w.dir, name), []byte("the person's"), 0o666))
	}
	cmd := w.command(nil, "/bin/sh", "-c",
		`cat >/dev/null; echo spoilt >/proc/self/fd/0; cat </proc/1/fd/0; ls -l /proc/self/fd/0`)
	in := must.Get(os.Open(filepath.Join(w.dir, "in")))(t)
	defer in.Close()
	cmd.Stdin = in
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	_ = cmd.Run()
	if got := must.Get(os.ReadFile(filepath.Join(w.dir, "in")))(t); string(got) != "the person's" ||
		!strings.Contains(out.String(), "pipe:") {
		t.Errorf("the file has %q; the sandbox: %s", got, out.String())
	}
}

// The user owns the program of which the init is made. A command that executes it through /proc, as in CVE-2019-5736,
// gets it by a mount that is read-only, and with Landlock not at all: it lies below no path of the sandbox.
func TestTheProgramCannotBeOverwritten(t *testing.T) {
	w := newWorld(t)
	must.Do(t, os.WriteFile(filepath.Join(w.project, "evil"), []byte("#!/proc/self/exe\n"), 0o755))
	out, errs, _ := harness.Finish(t, w.command(nil, "./evil"), harness.Patience)
	if out != "write to the program: read-only file system\n" &&
		errs != "box: run ./evil in the sandbox: permission denied\n" {
		t.Errorf("%s%s, want a read-only file system, or no permission", out, errs)
	}
}

func TestFilesOfTheHostAreNotThere(t *testing.T) {
	w := newWorld(t)
	outside := filepath.Join(w.dir, "outside")
	must.Do(t, os.WriteFile(outside, []byte("secret"), 0o644))
	script := `for f in /root/. /home/* /etc/shadow /etc/ssh /etc/sudoers /run/* /var/log /sys ` + outside + ` ` +
		w.sockets + `; do case $f in /home/agent|/root/.) continue;; esac; [ -e "$f" ] && echo "there is $f"; done
		for d in / /etc /usr /usr/bin /usr/local/bin /dev /opt /proc/sys/kernel; do
			touch $d/x 2>/dev/null && echo "wrote to $d"
		done
		chmod 600 /dev/null 2>/dev/null && echo changed /dev/null
		for d in /tmp /var/tmp /dev/shm /run /home/agent .; do touch $d/x || echo "no room in $d"; done`
	out, errs, code := w.sh(script, nil)
	if out != "" || code != 0 {
		t.Errorf("exit %d: %s%s", code, out, errs)
	}
	if _, err := os.Stat(filepath.Join(w.project, "x")); err != nil {
		t.Errorf("the project: %v", err)
	}
}

func TestMountsMasksAndFiles(t *testing.T) {
	w := newWorld(t)
	for _, dir := range []string{"hidden", "kept"} {
		must.Do(t, os.Mkdir(filepath.Join(w.project, dir), 0o777))
		must.Do(t, os.WriteFile(filepath.Join(w.project, dir, "file"), []byte(dir), 0o666))
	}
	out, errs, code := w.sh(`ls hidden; touch hidden/x kept/x; cat kept/file; tracker; cat /etc/passwd; df /usr | tail -1`,
		func(c *native.Config) {
			c.Masks = []string{filepath.Join(w.project, "hidden")}
			c.Mounts = append(c.Mounts, native.Mount{Source: filepath.Join(w.project, "kept"),
				Target: filepath.Join(w.project, "kept"), ReadOnly: true})
			tracker := []byte("#!/bin/sh\necho tracked\n")
			c.Files = append(c.Files, native.File{Path: "/usr/local/bin/tracker", Mode: 0o755, Data: tracker},
				native.File{Path: "/etc/passwd", Data: []byte("agent:x\n")})
			c.Env = []string{"PATH=/usr/local/bin:/usr/bin:/bin"}
		})
	if code != 0 || !strings.HasPrefix(out, "kepttracked\nagent:x\noverlay ") ||
		strings.Count(errs, "Read-only file system") != 2 {
		t.Errorf("exit %d: %s\n%s", code, out, errs)
	}
}

// Where the kernel has Landlock, the command is behind one layer of it.
func TestTheCommandIsBehindLandlock(t *testing.T) {
	w := newWorld(t)
	outside, _, _ := harness.Finish(t, exec.Command(w.program, "layers"), harness.Patience)
	if outside == "0\n" {
		t.Skip("this kernel has no Landlock")
	}
	must.Do(t, os.Rename(w.program, filepath.Join(w.project, "box")))
	w.program = filepath.Join(w.project, "box")
	out, errs, _ := harness.Finish(t, w.command(nil, "./box", "layers"), harness.Patience)
	more := func(s string) int { n, _ := strconv.Atoi(strings.TrimSpace(s)); return n }
	if more(out) != more(outside)-1 {
		t.Errorf("it takes %s layers more, want one less than %s%s", out, outside, errs)
	}
}

// A mount whose place is a link of the project leads nowhere else.
func TestAMountFollowsNoLink(t *testing.T) {
	w := newWorld(t)
	must.Do(t, os.Symlink("/tmp", filepath.Join(w.project, "link")))
	_, errs, code := w.sh("true", func(c *native.Config) {
		c.Mounts = append(c.Mounts, native.Mount{Source: w.sockets, Target: filepath.Join(w.project, "link")})
	})
	if code != 125 || !strings.Contains(errs, "too many levels of symbolic links") {
		t.Errorf("exit %d: %s; want the link refused", code, errs)
	}
}

func TestProcessesAreLimited(t *testing.T) {
	w := newWorld(t)
	out, errs, _ := w.sh(`i=0; while [ $i -lt 60 ]; do sleep 30 & i=$((i+1)); done; echo all`, func(c *native.Config) {
		c.Processes = 40
	})
	if strings.Contains(out, "all") || !strings.Contains(errs, "fork") {
		t.Errorf("60 processes: %s%s; want a fork that fails", out, errs)
	}
}

// A place that cannot be sealed is refused with the reason, and the command does not run.
func TestWhatCannotBeSealedIsRefused(t *testing.T) {
	for _, c := range []struct {
		name   string
		script string // in a user namespace of its own; "$@" is the program
		want   string
	}{
		{"user namespaces are switched off", `echo 0 >/proc/sys/user/max_user_namespaces && exec "$@"`,
			"user namespaces are switched off (user.max_user_namespaces is 0)"},
		{"a part of /proc is hidden, as in containers", `mount -t tmpfs none /proc/sys/kernel && exec "$@"`, "mount a /proc"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			w.before = []string{"unshare", "--user", "--map-root-user", "--mount", "sh", "-c", c.script, "-"}
			out, errs, code := harness.Finish(t, w.command(func(c *native.Config) { c.Owner = native.Owner{} },
				"/bin/sh", "-c", "echo it ran"), harness.Patience)
			if code != 125 || !strings.Contains(errs, "seal the sandbox without an engine: ") ||
				!strings.Contains(errs, c.want) || out != "" {
				t.Errorf("exit %d, %q: %s; want %q", code, out, errs, c.want)
			}
		})
	}
	t.Run("in a sandbox", func(t *testing.T) {
		w := newWorld(t)
		must.Do(t, os.Rename(w.program, filepath.Join(w.project, "box")))
		w.program = filepath.Join(w.project, "box")
		inner := w.command(func(c *native.Config) { c.Sockets = w.project }, "/bin/true")
		must.Do(t, os.Rename(inner.Args[1], filepath.Join(w.project, "inner.json")))
		out, errs, code := harness.Finish(t, w.command(nil, "./box", "inner.json"), harness.Patience)
		if code != 125 || !strings.Contains(errs, "seal the sandbox without an engine: ") {
			t.Errorf("exit %d, %s%s; want it refused", code, out, errs)
		}
	})
}

// The sandbox itself is tried from inside before its command begins.
func TestWhatLooksSealedAndIsNotIsRefused(t *testing.T) {
	for want, change := range map[string]func(*native.Config){
		"find that files of the host are not there: there is /sys/kernel": func(c *native.Config) {
			c.Mounts = append(c.Mounts, native.Mount{Source: "/sys", Target: "/sys", ReadOnly: true})
		},
		"find that system calls are filtered: unshare: ": func(c *native.Config) {
			c.Seccomp = strings.Replace(c.Seccomp, `"setns","unshare",`, `"setns",`, 1)
		},
		"find that system calls are filtered: a socket of AF_VSOCK: ": func(c *native.Config) {
			c.Seccomp = strings.Replace(c.Seccomp, `"value": 10,"op"`, `"value": 40,"op"`, 1)
		},
	} {
		w := newWorld(t)
		out, errs, code := w.sh("echo it ran", change)
		if code != 125 || out != "" || !strings.Contains(errs, want) {
			t.Errorf("exit %d, %q: %s; want %q", code, out, errs, want)
		}
	}
}

// A gateway that does not come up, or a proxy that is not there, lets nothing begin.
func TestWithoutAProxyNothingBegins(t *testing.T) {
	w := newWorld(t)
	must.Do(t, os.Remove(filepath.Join(w.sockets, "proxy.sock")))
	out, errs, code := w.sh("echo it ran", nil)
	if code != 125 || !strings.Contains(errs, "reach the proxy's socket") || out != "" {
		t.Errorf("exit %d, %q: %s", code, out, errs)
	}
}
