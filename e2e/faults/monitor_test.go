package faults

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/e2e/harness"
	"github.com/ALRubinger/aileron/e2e/must"
)

// A monitor (conmon, or containerd's shim) that is killed can report no end, and the streams of its container end with
// it.
func TestAKilledMonitorEndsTheBox(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		script string
		of     func(r *running) process
	}{
		"of the box":           {"sleep 600", func(r *running) process { return r.box }},
		"of a box that writes": {"while echo; do sleep 0.1; done", func(r *running) process { return r.box }},
		"of the gateway":       {"sleep 600", func(r *running) process { return r.gateway }},
		"of a detached one":    {"", func(r *running) process { return r.box }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			engines(t, func(t *testing.T, u *user) {
				if c.script == "" {
					r := u.detach("sleep 600")
					kill(t, parentOf(t, c.of(r)), syscall.SIGKILL)
					harness.WaitFor(t, "the session ends", func() bool { return !r.self.lives() })
					r.closed(1, "monitor of the sandbox, ended")
					r.nothing()
					return
				}
				r := u.start(c.script)
				kill(t, parentOf(t, c.of(r)), syscall.SIGKILL)
				r.fails("monitor of ", ", ended, so the sandbox was ended too; run it again")
				r.closed(1, "monitor of ")
				r.nothing()
			})
		})
	}
}

// A session has attached to its box then, and has not looked for the monitor yet.
func TestAMonitorKilledWhileTheBoxStartsEndsTheBox(t *testing.T) {
	ownService(t)
	t.Parallel()
	for name, c := range map[string]struct{ detached, begun bool }{
		"before it begins":             {},
		"when it has begun":            {begun: true},
		"of a detached one":            {detached: true},
		"of a detached one, which has": {detached: true, begun: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := newUser(t, "podman")
			dir := t.TempDir()
			held, goOn := filepath.Join(dir, "held"), filepath.Join(dir, "go")
			u.wrapRuntime(func(runtime string) string {
				wait := fmt.Sprintf("mkdir %q; until [ -e %q ]; do sleep 0.05; done", held, goOn)
				start := fmt.Sprintf(`%q "$@" || exit`, runtime)
				if c.begun {
					wait, start = start, wait
				}
				return fmt.Sprintf("case \" $* \" in *' start '*) if ! mkdir %q; then\n%s\n%s\nexit; fi; esac\nexec %q \"$@\"\n",
					filepath.Join(dir, "gateway"), wait, start, runtime)
			})
			line := u.boxArgs("sleep 600")
			if c.detached {
				line = u.detachArgs("sleep 600")
			}
			r := u.begin(line...)
			harness.WaitFor(t, "the box is started", func() bool { _, err := os.Stat(held); return err == nil })
			_, monitor, id := u.making("box")
			kill(t, monitor, syscall.SIGKILL)
			// The terminal ends with it, which after the start would end the command before aileron sees it.
			harness.WaitFor(t, "the monitor ends", func() bool { return !monitor.lives() })
			r.session = must.Get(os.ReadDir(filepath.Join(u.home, "sessions")))(t)[0].Name()
			must.Do(t, os.WriteFile(goOn, nil, 0o600))
			if c.detached && c.begun {
				r.end() // the command, which ends with its terminal, may have begun for it
				harness.WaitFor(t, "the session ends", func() bool { return len(u.rows("--event", "session.ended")) == 1 })
			} else {
				r.fails("conmon, podman's monitor of the sandbox, ended, so the sandbox was ended too; run it again")
			}
			r.closed(1, "conmon, podman's monitor of the sandbox, ended")
			var left []string
			if !harness.Poll(patience, 100*time.Millisecond, func() bool { left = u.of(id); return len(left) == 0 }) {
				t.Errorf("left:\n%s", strings.Join(left, "\n"))
			}
			harness.WaitFor(t, "nothing is left", func() bool { return u.left() == "" })
			r.nothing()
		})
	}
}

// holdCreation has Podman's OCI runtime wait when it has made the first container of a role: what a service that is
// killed then has started, is there for as long as the test needs.
func (u *user) holdCreation(role string) (held string) {
	u.t.Helper()
	held = filepath.Join(u.t.TempDir(), "held")
	u.wrapRuntime(func(runtime string) string {
		return fmt.Sprintf(`%q "$@" || exit
case " $* " in *" create "*)
	if tr '\0' ' ' <"/proc/$PPID/cmdline" | grep -q -- ' -n aileron-[^ ]*-%s ' && mkdir %q 2>/dev/null; then sleep 3600; fi
esac
`, runtime, role, held)
	})
	return held
}

// wrapRuntime has Podman run a script in place of its OCI runtime, whose path the script gets.
func (u *user) wrapRuntime(script func(runtime string) string) {
	u.t.Helper()
	info := exec.Command("podman", "info", "--format", "{{.Host.OCIRuntime.Name}} {{.Host.OCIRuntime.Path}}")
	info.Env = engineEnv()
	name, path, _ := strings.Cut(strings.TrimSpace(string(must.Get(info.Output())(u.t))), " ")
	dir := u.t.TempDir()
	wrapper, conf := filepath.Join(dir, name), filepath.Join(dir, "containers.conf")
	must.Do(u.t, os.WriteFile(wrapper, []byte("#!/bin/sh\n"+script(path)), 0o755))
	text := string(must.Get(os.ReadFile(podmanConf()))(u.t)) + fmt.Sprintf("[engine.runtimes]\n%s = [%q]\n", name, wrapper)
	must.Do(u.t, os.WriteFile(conf, []byte(text), 0o600))
	u.env = append(u.env, "CONTAINERS_CONF="+conf)
}

// making waits until the OCI runtime has made the container of a role for the only session of a person, and returns the
// service of Podman's that waits for that, the container's monitor and its id.
func (u *user) making(role string) (service, monitor process, id string) {
	u.t.Helper()
	option := func(line []string, name string) string {
		at := slices.Index(line, name)
		if at < 0 || at+1 == len(line) {
			return ""
		}
		return line[at+1]
	}
	found := harness.Poll(patience, 20*time.Millisecond, func() bool {
		dirs, _ := os.ReadDir(filepath.Join(u.home, "sessions"))
		for _, pid := range pids() {
			line := args(pid)
			switch {
			case slices.Contains(line, "service") && slices.Contains(args(parent(pid)), u.project):
				service = process{pid, startOf(pid)}
			case len(dirs) == 1 && option(line, "-n") == "aileron-"+dirs[0].Name()+"-"+role:
				monitor, id = process{pid, startOf(pid)}, option(line, "-c")
			}
		}
		return service.pid > 0 && monitor.pid > 0
	})
	if !found {
		u.t.Fatalf("no monitor was seen of the container of the %s", role)
	}
	return service, monitor, id
}

// of are the living processes in the control groups of a container, and its monitor.
func (u *user) of(id string) (left []string) {
	for _, pid := range pids() {
		groups, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
		if line := args(pid); startOf(pid) != "" && (strings.Contains(string(groups), id) || slices.Contains(line, id)) {
			left = append(left, strings.Join(line, " "))
		}
	}
	return left
}

// What it had started for a container is not in Podman's records then.
func TestAServiceKilledWhileItMakesAContainerLeavesNoProcess(t *testing.T) {
	ownService(t)
	t.Parallel()
	for name, c := range map[string]struct {
		role          string
		detached, all bool // all are killed: aileron and its reaper too
	}{
		"the gateway":                       {role: "gw"},
		"the box":                           {role: "box"},
		"the gateway of a detached session": {role: "gw", detached: true},
		"the gateway, and all are killed":   {role: "gw", all: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := newUser(t, "podman")
			line := u.boxArgs("sleep 600")
			if c.detached {
				line = u.detachArgs("sleep 600")
			}
			held := u.holdCreation(c.role)
			r := u.begin(line...)
			harness.WaitFor(t, "the runtime makes the container", func() bool { _, err := os.Stat(held); return err == nil })
			service, monitor, id := u.making(c.role)
			if c.all {
				kill(t, r.child("warden"), syscall.SIGKILL)
				r.signal(syscall.SIGKILL)
			}
			kill(t, service, syscall.SIGKILL)
			if c.all {
				r.end()
				if !monitor.lives() {
					t.Error("nothing was left, so nothing is tried here")
				}
				harness.WaitFor(t, "the next sessions clean up",
					func() bool { u.must(u.boxArgs("true")...); return u.left() == "" })
			} else {
				r.fails("service of podman", "killed")
			}
			// A Podman that the monitor had started to clean up ends by itself.
			var left []string
			if !harness.Poll(patience, 100*time.Millisecond, func() bool { left = u.of(id); return len(left) == 0 }) {
				t.Errorf("left:\n%s", strings.Join(left, "\n"))
			}
			r.nothing()
		})
	}
}
