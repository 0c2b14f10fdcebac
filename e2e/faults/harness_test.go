// Package faults breaks what a sealed box stands on, while it stands: its
// gateway, its engine, its line, its containers, aileron itself. Each time a
// message must name what happened, and nothing may be left.
package faults

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/e2e/harness"
	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/e2e/stub"
	"github.com/ALRubinger/aileron/sandbox"
)

var binary string // the built aileron: harness.Build

func TestMain(m *testing.M) {
	os.Exit(harness.Run(m, "faults", map[string]string{"aileron": "../../cmd/aileron", "flood": "./testdata/flood"},
		func(dir string) {
			binary = filepath.Join(dir, "aileron")
			if err := os.Chmod(dir, 0o711); err != nil { // another user runs it
				panic(err)
			}
		}, docker.close))
}

const (
	secret     = "ghp-stand/in+SECRET0123456789abcdefXYZ"
	passphrase = "correct horse battery"
	echoFQN    = "github://aileron-tests/aileron-connector-echo"
)

var patience = harness.Patience

// engines runs a test on each engine. Those that break the engine itself do
// not come through here.
func engines(t *testing.T, test func(t *testing.T, u *user)) {
	for _, kind := range []string{"podman", "docker"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			test(t, newUser(t, kind))
		})
	}
}

// places runs a test on each engine, and without one.
func places(t *testing.T, test func(t *testing.T, u *user)) {
	engines(t, test)
	t.Run(sandbox.Native, func(t *testing.T) {
		t.Parallel()
		test(t, newUser(t, sandbox.Native))
	})
}

// user is one person's home, project and stub, with an engine.
type user struct {
	t       *testing.T
	engine  string
	home    string
	project string
	origin  *stub.Server
	env     []string // of aileron's, besides
	before  []string // words before aileron
}

// bound is a home in which the echo connector is bound: opening a vault is
// slow on purpose.
var bound = sync.OnceValues(func() (string, error) {
	home := filepath.Join(filepath.Dir(binary), "home")
	return home, harness.Bind(binary, home, passphrase,
		harness.Connector{Dir: "../testdata/connectors/echo", FQN: echoFQN, Secret: secret})
})

// newUser is a person with an engine that answers and has the base image.
func newUser(t *testing.T, engine string) *user {
	t.Helper()
	harness.PodmanIsEnough(t, engine)
	harness.Turn(t)
	switch engine {
	case "docker":
		docker.need(t)
	case sandbox.Native:
		return newOrdinary(t)
	default:
		needPodman(t)
	}
	return newHome(t, engine)
}

// newHome is a person with an engine, or with none, that is not looked at.
func newHome(t *testing.T, engine string) *user {
	t.Helper()
	template := must.Get(bound())(t)
	// Below the shortest directory there is: socket paths are bounded.
	dir, err := os.MkdirTemp("", "faults-")
	if err != nil {
		t.Fatal(err)
	}
	u := &user{t: t, engine: engine, home: filepath.Join(dir, "h"), project: filepath.Join(dir, "p"),
		origin: stub.Start(t, stub.Script{Token: secret})}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	must.Do(t, os.Mkdir(u.project, 0o755))
	harness.Copy(t, template, u.home)
	return u
}

func (u *user) command(args ...string) *exec.Cmd {
	words := slices.Concat(u.before, []string{binary}, args)
	cmd := exec.Command(words[0], words[1:]...)
	cmd.Env = append(append(engineEnv(), "AILERON_HOME="+u.home, "AILERON_VAULT_PASSPHRASE="+passphrase), u.env...)
	return cmd
}

// boxArgs is a shell script in a box with a way to the stub.
func (u *user) boxArgs(script string) []string {
	return []string{"sandbox", "run", "--sandbox=" + u.engine, "--dir", u.project, "--upstream-ca", u.origin.Roots,
		"--resolve", stub.Echo + ":443:" + u.origin.Addr, "--", "sh", "-c", script}
}

type result struct {
	out, err string
	code     int
}

// run runs aileron to its end.
func (u *user) run(args ...string) result {
	u.t.Helper()
	return u.begin(args...).end()
}

func (u *user) must(args ...string) result {
	u.t.Helper()
	r := u.run(args...)
	if r.code != 0 {
		u.t.Fatalf("aileron %s: exit %d\n%s%s", strings.Join(args, " "), r.code, r.out, r.err)
	}
	return r
}

type row = map[string]any

func (u *user) rows(flags ...string) []row {
	u.t.Helper()
	return harness.Rows[row](u.t, u.must(append([]string{"audit", "list", "--json", "--limit", "0"}, flags...)...).out)
}

// ask runs the engine's own command line, and returns "" where it fails.
func (u *user) ask(args ...string) string {
	cmd := exec.Command(u.engine, args...)
	cmd.Env = engineEnv()
	out, _ := cmd.Output()
	return strings.TrimSpace(string(out))
}

func (u *user) mustAsk(args ...string) string {
	u.t.Helper()
	return u.mustAskDespite("", args...)
}

// mustAskDespite is mustAsk, and asks again where an error of the engine contains transient: a race that it may lose on
// a busy machine.
func (u *user) mustAskDespite(transient string, args ...string) string {
	u.t.Helper()
	var out []byte
	var err error
	harness.Poll(patience, 100*time.Millisecond, func() bool {
		cmd := exec.Command(u.engine, args...)
		cmd.Env = engineEnv()
		out, err = cmd.CombinedOutput()
		return err == nil || transient == "" || !strings.Contains(string(out), transient)
	})
	if err != nil {
		u.t.Fatalf("%s %s: %v\n%s", u.engine, strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// pause pauses a container. The runtime gives up when the kernel has not frozen all of it in some milliseconds, and
// thaws it.
func (u *user) pause(container string) {
	u.t.Helper()
	u.mustAskDespite("unable to freeze", "pause", container)
}

// running is an aileron that runs.
type running struct {
	u         *user
	cmd       *exec.Cmd
	out, errs bytes.Buffer
	ended     chan struct{}

	self         process
	session      string
	box, gateway process // the first processes of its containers, seen from here
}

// begin starts aileron.
func (u *user) begin(args ...string) *running {
	u.t.Helper()
	return u.beginTo(nil, args...)
}

// beginTo starts aileron with out, unless it is nil, as its output.
func (u *user) beginTo(out *os.File, args ...string) *running {
	u.t.Helper()
	r := &running{u: u, cmd: u.command(args...), ended: make(chan struct{})}
	r.cmd.Stdout, r.cmd.Stderr = &r.out, &r.errs
	if out != nil {
		r.cmd.Stdout = out
	}
	r.cmd.WaitDelay = 10 * time.Second // a warden may hold the pipes
	r.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	must.Do(u.t, r.cmd.Start())
	r.self = process{r.cmd.Process.Pid, startOf(r.cmd.Process.Pid)}
	go func() { _ = r.cmd.Wait(); close(r.ended) }()
	u.t.Cleanup(func() {
		if _, ended := r.over(); !ended {
			_ = r.cmd.Process.Signal(syscall.SIGCONT)
			_ = r.cmd.Process.Kill()
			<-r.ended
			if u.engine == "" {
				return
			}
			left := ""
			if !harness.Poll(patience, 100*time.Millisecond, func() bool { left = u.remains(); return left == "" }) {
				u.t.Errorf("left, although its session was killed:\n%s", left)
			}
		}
	})
	return r
}

// mark is the part of a script that makes the file up. What must be there before a test goes on, as a trap that a
// signal is for, stands before it.
const mark = "echo up > up; "

// catches42 begins a script that ends with 42 when it is asked to end.
const catches42 = "trap 'exit 42' TERM; " + mark

// marked is a script that makes the file up, at its begin unless it says where.
func marked(script string) string {
	if strings.Contains(script, mark) {
		return script
	}
	return mark + script
}

// start starts a box and waits until its script has made the file up.
func (u *user) start(script string) *running {
	u.t.Helper()
	r := u.begin(u.boxArgs(marked(script))...)
	r.hasBegun()
	return r
}

// hasBegun waits until the script of the only session has made the file up.
func (r *running) hasBegun() {
	u := r.u
	u.t.Helper()
	harness.WaitFor(u.t, "the box begins", func() bool {
		if res, ended := r.over(); ended {
			u.t.Fatalf("it ended with %d: %s%s", res.code, res.out, res.err)
		}
		return u.made("up")
	})
	dirs, err := os.ReadDir(filepath.Join(u.home, "sessions"))
	if err != nil || len(dirs) != 1 {
		u.t.Fatalf("sessions: %v, %v", dirs, err)
	}
	r.session = dirs[0].Name()
	r.findProcesses()
}

// findProcesses finds the first processes of the sandbox and of its gateway.
func (r *running) findProcesses() {
	r.u.t.Helper()
	if r.u.engine == sandbox.Native {
		r.gateway = r.u.childOf(r.self.pid, "aileron-native-keeper")
		r.box = r.u.childOf(r.gateway.pid, "aileron-native-init")
		return
	}
	r.box, r.gateway = r.u.process(r.name("box")), r.u.process(r.name("gw"))
}

func (r *running) name(role string) string { return "aileron-" + r.session + "-" + role }

// over reports whether it has ended, and how.
func (r *running) over() (result, bool) {
	select {
	case <-r.ended:
		return result{r.out.String(), harness.WithoutNotices(r.errs.String()), r.cmd.ProcessState.ExitCode()}, true
	default:
		return result{}, false
	}
}

// end waits for the end.
func (r *running) end() result {
	r.u.t.Helper()
	select {
	case <-r.ended:
	case <-time.After(patience):
		r.u.t.Fatalf("aileron did not end")
	}
	res, _ := r.over()
	return res
}

func (r *running) signal(sig syscall.Signal) {
	r.u.t.Helper()
	if err := r.cmd.Process.Signal(sig); err != nil {
		r.u.t.Fatal(err)
	}
}

// isFailure reports whether text is what a failed command prints: its error and its hint in one line.
func isFailure(text string) bool {
	return strings.HasPrefix(text, "aileron: ") && strings.Count(strings.TrimSuffix(text, "\n"), "\n") == 0
}

// fails requires the exit code 1, and an error that contains all of wants.
func (r *running) fails(wants ...string) {
	r.u.t.Helper()
	res := r.end()
	if res.code != 1 || !isFailure(res.err) {
		r.u.t.Errorf("exit %d with %q, want 1 and an error", res.code, res.err)
	}
	for _, want := range wants {
		if !strings.Contains(res.err, want) {
			r.u.t.Errorf("it says %q, want %q in it", res.err, want)
		}
	}
}

// closed wants the session's end in the audit log, once, and a chain that
// holds.
func (r *running) closed(code float64, cause string) {
	r.u.t.Helper()
	rows := r.u.rows("--event", "session.ended", "--session", r.session)
	if len(rows) != 1 {
		r.u.t.Fatalf("session.ended: %v, want one row", rows)
	}
	fields, _ := rows[0]["fields"].(map[string]any)
	if fields["exit_code"] != code || !strings.Contains(fmt.Sprint(fields["cause"]), cause) {
		r.u.t.Errorf("session.ended says %v, want the code %v and %q", fields, code, cause)
	}
	r.u.must("audit", "verify")
}

func (u *user) made(name string) bool {
	_, err := os.Stat(filepath.Join(u.project, name))
	return err == nil
}

// say puts a file into the project, for which a script in the box may wait.
func (u *user) say(name string) {
	u.t.Helper()
	must.Do(u.t, os.WriteFile(filepath.Join(u.project, name), nil, 0o644))
}

// process is a process of this machine, which is not mistaken for another
// that gets its number.
type process struct {
	pid   int
	start string
}

func (u *user) process(container string) process {
	u.t.Helper()
	pid, err := strconv.Atoi(u.mustAsk("inspect", "--format", "{{.State.Pid}}", container))
	if err != nil || pid < 1 {
		u.t.Fatalf("the first process of %s: %d, %v", container, pid, err)
	}
	return process{pid, startOf(pid)}
}

// startOf is when a process started; "" for one that has ended.
func startOf(pid int) string {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return ""
	}
	_, rest, _ := strings.Cut(string(stat[bytes.LastIndexByte(stat, ')'):]), " ")
	fields := strings.Fields(rest) // proc(5): the third is the first here
	if len(fields) < 20 || fields[0] == "Z" || fields[0] == "X" {
		return ""
	}
	return fields[19]
}

func (p process) lives() bool { return p.start != "" && startOf(p.pid) == p.start }

// child is a process that aileron started, by a word of its command line.
func (r *running) child(word string) process {
	r.u.t.Helper()
	return r.u.childOf(r.cmd.Process.Pid, word)
}

// childOf is child of any process.
func (u *user) childOf(parent int, word string) process {
	u.t.Helper()
	for _, pid := range pids() {
		status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		if strings.Contains(string(status), fmt.Sprintf("\nPPid:\t%d\n", parent)) && slices.Contains(args(pid), word) {
			return process{pid, startOf(pid)}
		}
	}
	u.t.Fatalf("process %d has no child with %s", parent, word)
	return process{}
}

func pids() (all []int) {
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil {
			all = append(all, pid)
		}
	}
	return all
}

func args(pid int) []string {
	line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	return strings.Split(strings.TrimSuffix(string(line), "\x00"), "\x00")
}

func kill(t *testing.T, p process, sig syscall.Signal) {
	t.Helper()
	if !p.lives() {
		t.Fatalf("process %d has ended already", p.pid)
	}
	must.Do(t, syscall.Kill(p.pid, sig))
}

// left is what this person's sessions have left: directories of sessions, and what remains has; "" for nothing.
func (u *user) left() string {
	u.t.Helper()
	var left []string
	dirs, _ := os.ReadDir(filepath.Join(u.home, "sessions"))
	for _, d := range dirs {
		left = append(left, "directory "+d.Name())
	}
	if remains := u.remains(); remains != "" {
		left = append(left, remains)
	}
	return strings.Join(left, "\n")
}

// remains is what this person's sessions have left beside their directories, which stay until the next session where
// one was killed: containers, processes, mounts; "" for nothing.
func (u *user) remains() string {
	u.t.Helper()
	var left []string
	list := []string{"ps", "-a", "--format", "{{.Names}}"}
	if u.engine == "podman" {
		list = append(list, "--external") // what its own records have lost
	}
	var names []string
	if u.engine != sandbox.Native {
		names = strings.Fields(u.ask(list...))
	}
	for _, started := range u.rows("--event", "session.started") {
		for _, name := range names {
			if id := fmt.Sprint(started["session_id"]); strings.Contains(name, id) {
				left = append(left, "container "+name)
			}
		}
	}
	for _, pid := range pids() {
		if line := args(pid); pid != os.Getpid() && slices.Contains(line, u.home) {
			left = append(left, "process "+strings.Join(line, " "))
		}
	}
	mounts, _ := os.ReadFile("/proc/self/mountinfo")
	for line := range strings.Lines(string(mounts)) {
		if strings.Contains(line, filepath.Dir(u.home)+"/") {
			left = append(left, "mount "+strings.TrimSpace(line))
		}
	}
	return strings.Join(left, "\n")
}

// looking are the containers of processes, each by number and start, that only
// lend their image's files. Podman 4 knows no label in its list.
func (u *user) looking(owners map[string]bool) (left []string) {
	u.t.Helper()
	if u.engine == sandbox.Native {
		return nil
	}
	ids := strings.Fields(u.ask("ps", "-aq", "--filter", "label=aileron.session=none"))
	if len(ids) == 0 {
		return nil
	}
	for line := range strings.Lines(u.ask(append([]string{"inspect", "--type", "container", "--format",
		`{{.Name}} {{index .Config.Labels "aileron.owner"}}`}, ids...)...)) {
		name, owner, _ := strings.Cut(strings.TrimSpace(line), " ")
		if at := strings.LastIndex(owner, "/"); at > 0 && owners[owner[:at]] {
			left = append(left, name+" of "+owner)
		}
	}
	return left
}

// nothing wants nothing left.
func (r *running) nothing() {
	r.u.t.Helper()
	if left := r.u.left(); left != "" {
		r.u.t.Errorf("left:\n%s", left)
	}
	for what, p := range map[string]process{"box": r.box, "gateway": r.gateway} {
		if p.lives() {
			r.u.t.Errorf("the %s still runs", what)
		}
	}
	if dirs, _ := filepath.Glob(filepath.Join(os.TempDir(),
		fmt.Sprintf("aileron-engine-%d-%s-*", r.self.pid, r.self.start))); len(dirs) > 0 {
		r.u.t.Errorf("left: %v", dirs)
	}
}

// until is a script's wait for a file, by a program that needs no network.
func until(name string) string { return "until [ -e " + name + " ]; do sleep 0.1; done; " }

// get is a script's exchange with the stub.
const get = "curl -sS --max-time 300 https://" + stub.Echo + "/echo"

// isGone reports whether a file of /proc could not be opened, or read, because its thread has ended.
func isGone(err error) bool { return errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ESRCH) }
