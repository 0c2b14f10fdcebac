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

// heldRuntime returns the settings of a daemon that logs the calls it gets, and whose OCI runtime waits when it has
// made a container, where a test of these asks for it: what a daemon that is killed then has started, is there for as
// long as the test needs.
func (d *daemon) heldRuntime() (settings string, err error) {
	runtime, err := exec.LookPath("runc")
	if err != nil {
		return "", err
	}
	wrapper := filepath.Join(d.dir, "runtime")
	script := fmt.Sprintf(`#!/bin/sh
case " $* " in *" create "*)
	if mv %[1]q/hold-2 %[1]q/hold-1 2>/dev/null; then
		:
	elif mv %[1]q/hold-1 %[1]q/holds 2>/dev/null; then
		%[2]q "$@" || exit
		mv %[1]q/holds %[1]q/held
		exec sleep 3600
	fi
esac
exec %[2]q "$@"
`, d.dir, runtime)
	return fmt.Sprintf(`{"runtimes": {"held": {"path": %q}}, "default-runtime": "held", "debug": true}`, wrapper),
		os.WriteFile(wrapper, []byte(script), 0o755)
}

// hold has the daemon wait when it has made the nth container from now, and returns what waits until it does.
func (d *daemon) hold(t *testing.T, nth int) (wait func()) {
	t.Helper()
	held := filepath.Join(d.dir, "held")
	must.Do(t, os.WriteFile(filepath.Join(d.dir, fmt.Sprint("hold-", nth)), nil, 0o600))
	t.Cleanup(func() { _ = os.Remove(held) })
	return func() {
		t.Helper()
		harness.WaitFor(t, "the runtime makes the container", func() bool { _, err := os.Stat(held); return err == nil })
	}
}

// shims returns the ids of the containers that have a monitor of the daemon's.
func (d *daemon) shims() (ids []string) {
	for _, pid := range pids() {
		line := args(pid)
		at := slices.Index(line, "-id")
		if startOf(pid) != "" && strings.Contains(line[0], "containerd-shim") && at > 0 && at+1 < len(line) &&
			slices.ContainsFunc(line, func(arg string) bool { return strings.HasPrefix(arg, d.dir+"/") }) {
			ids = append(ids, line[at+1])
		}
	}
	return ids
}

// What containerd had started for a container is in no record of the next daemon's. These tests are not parallel: all
// others need the daemon.
func TestADockerKilledWhileItStartsAContainerLeavesNothing(t *testing.T) {
	for name, c := range map[string]struct {
		nth           int
		detached, all bool // all are killed: aileron and its reaper too
	}{
		"the gateway":                       {nth: 1},
		"the box":                           {nth: 2},
		"the gateway of a detached session": {nth: 1, detached: true},
		"the box, and all are killed":       {nth: 2, all: true},
	} {
		t.Run(name, func(t *testing.T) {
			u := newUser(t, "docker")
			line := u.boxArgs("sleep 600")
			if c.detached {
				line = u.detachArgs("sleep 600")
			}
			wait := docker.hold(t, c.nth)
			r := u.begin(line...)
			wait()
			made := docker.shims()
			if len(made) != c.nth {
				t.Errorf("%d containers have a monitor, want %d", len(made), c.nth)
			}
			if c.all {
				kill(t, r.child("warden"), syscall.SIGKILL)
				r.signal(syscall.SIGKILL)
				r.end()
			}
			docker.kill()
			if !c.all {
				r.fails("docker does not respond on its socket", "start docker again")
			}
			must.Do(t, docker.start())
			if c.all {
				if len(docker.shims()) == 0 {
					t.Error("nothing was left, so nothing is tried here")
				}
				u.must(u.boxArgs("true")...)
			}
			harness.WaitFor(t, "nothing is left", func() bool { return u.left() == "" })
			var left []string
			if !harness.Poll(patience, 100*time.Millisecond, func() bool {
				left = nil
				for _, id := range made {
					left = append(left, u.of(id)...)
				}
				return len(left) == 0
			}) {
				t.Errorf("left:\n%s", strings.Join(left, "\n"))
			}
			r.nothing()
		})
	}
}

// The container may be in the records of the next daemon, or only its files may be there.
func TestADockerKilledWhileItMakesAContainerLeavesNothing(t *testing.T) {
	for name, c := range map[string]struct {
		nth int
		all bool // all are killed: aileron and its reaper too
	}{
		"the first":                      {nth: 1},
		"the second":                     {nth: 2},
		"the second, and all are killed": {nth: 2, all: true},
	} {
		t.Run(name, func(t *testing.T) {
			u := newUser(t, "docker")
			log := filepath.Join(docker.dir, "log")
			before := len(must.Get(os.ReadFile(log))(t))
			r := u.begin(u.boxArgs("sleep 600")...)
			if !harness.Poll(patience, time.Millisecond, func() bool {
				calls, _ := os.ReadFile(log)
				return strings.Count(string(calls[min(before, len(calls)):]), "/containers/create") >= c.nth
			}) {
				t.Fatalf("no %d containers are made", c.nth)
			}
			if c.all {
				kill(t, r.child("warden"), syscall.SIGKILL)
				r.signal(syscall.SIGKILL)
			}
			docker.kill()
			if c.all {
				r.end()
			} else {
				r.fails("docker does not respond on its socket", "start docker again")
			}
			must.Do(t, docker.start())
			if c.all {
				u.must(u.boxArgs("true")...)
			}
			harness.WaitFor(t, "nothing is left", func() bool { return u.left() == "" })
			r.nothing()
		})
	}
}
