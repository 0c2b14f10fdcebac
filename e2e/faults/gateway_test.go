package faults

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/e2e/harness"
	"github.com/ALRubinger/aileron/e2e/stub"
)

func TestAKilledGatewayEndsTheBox(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, u *user) {
		r := u.start("curl -s https://api.echo.example/stall")
		harness.WaitFor(t, "an exchange", func() bool { return len(u.origin.Seen()) == 1 })
		kill(t, r.gateway, syscall.SIGKILL)
		r.fails("its gateway ended (killed)", "the sandbox was ended")
		r.closed(1, "its gateway ended")
		r.nothing()
		// The exchange that was under way has its intent and one outcome.
		intents := u.rows("--event", "connector.proxy.started")
		if len(intents) != 1 {
			t.Fatalf("rows of intent: %v", intents)
		}
		id := intents[0]["fields"].(map[string]any)["request_id"]
		outcomes := slices.DeleteFunc(u.rows("--session", r.session), func(r row) bool {
			fields, _ := r["fields"].(map[string]any)
			return r["event"] == "connector.proxy.started" || fields["request_id"] != id
		})
		if len(outcomes) != 1 {
			t.Errorf("outcomes of the exchange: %v, want one", outcomes)
		}
	})
}

// gatewayOf finds the gateway of a person's session while aileron still
// starts it, by what is mounted into it.
func gatewayOf(u *user, ready bool) (process, bool) {
	for _, pid := range pids() {
		if line := args(pid); len(line) < 2 || line[0] != "/aileron" || line[1] != "gateway" {
			continue
		}
		mounts, _ := os.ReadFile(fmt.Sprintf("/proc/%d/mountinfo", pid))
		status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		if strings.Contains(string(mounts), filepath.Dir(u.home)[len(os.TempDir()):]+"/h/sessions/") &&
			(!ready || strings.Contains(string(status), "\nUid:\t65532\t")) {
			return process{pid, startOf(pid)}, true
		}
	}
	return process{}, false
}

// beforeTheBox begins a run whose script makes the file up, and returns it stopped,
// with its gateway, while the engine has not been asked to start the box. ok is
// false for a try on which the box was quicker, and which proves nothing.
func (u *user) beforeTheBox(ready bool) (r *running, gateway process, ok bool) {
	u.t.Helper()
	r = u.begin(u.boxArgs("echo up > up; sleep 600")...)
	// A busy machine takes long to look: aileron stands still meanwhile.
	if !harness.Poll(patience, 5*time.Millisecond, func() (found bool) {
		if res, ended := r.over(); ended {
			u.t.Fatalf("it ended with %d before its gateway was seen: %s", res.code, res.err)
		}
		_ = r.cmd.Process.Signal(syscall.SIGSTOP)
		if gateway, found = gatewayOf(u, ready); !found {
			_ = r.cmd.Process.Signal(syscall.SIGCONT)
		}
		return found
	}) {
		u.t.Fatal("its gateway was not seen")
	}
	dirs, err := os.ReadDir(filepath.Join(u.home, "sessions"))
	if err != nil || len(dirs) != 1 {
		u.t.Fatalf("sessions: %v, %v", dirs, err)
	}
	r.session = dirs[0].Name()
	// An engine that is starting the box answers when it has: both lock a container
	// for as long as that takes.
	return r, gateway, u.isCreated(r.name("box"))
}

// isCreated reports whether a container has not been started. An aileron that stands still in the midst of an upload to
// the container leaves it locked: then the engine does not answer, and nothing is known.
func (u *user) isCreated(container string) bool {
	u.t.Helper()
	ctx, cancel := context.WithTimeout(u.t.Context(), 10*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, u.engine, "inspect", "--format", "{{.State.Status}}", container)
	cmd.Env = engineEnv()
	out, err := cmd.Output()
	if err != nil && ctx.Err() == nil {
		u.t.Fatalf("%s inspect %s: %v", u.engine, container, err)
	}
	return strings.TrimSpace(string(out)) == "created"
}

func TestAGatewayThatDiesBeforeTheBoxEndsTheStart(t *testing.T) {
	t.Parallel()
	const tries = 20
	for name, ready := range map[string]bool{"at its start": false, "when it has dropped its privileges": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			engines(t, func(t *testing.T, u *user) {
				for range tries {
					r, gateway, ok := u.beforeTheBox(ready)
					if ok {
						kill(t, gateway, syscall.SIGKILL)
						r.signal(syscall.SIGCONT)
						r.fails("gateway")
						if u.made("up") {
							t.Error("the box has begun")
						}
						r.nothing()
						return
					}
					r.signal(syscall.SIGCONT)
					r.signal(syscall.SIGTERM)
					r.end()
					r.nothing()
					_ = os.Remove(filepath.Join(u.project, "up"))
				}
				t.Fatalf("the box was quicker in %d tries", tries)
			})
		})
	}
}

// status is a figure of the gateway's /proc/PID/status, in KiB.
func (r *running) status(key string) int {
	r.u.t.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", r.gateway.pid))
	if err != nil {
		r.u.t.Fatalf("the gateway has ended: %v", err)
	}
	for line := range strings.Lines(string(data)) {
		if value, ok := strings.CutPrefix(line, key+":"); ok {
			n, err := strconv.Atoi(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(value), "kB")))
			if err != nil {
				r.u.t.Fatal(err)
			}
			return n
		}
	}
	r.u.t.Fatalf("no %s", key)
	return 0
}

// An agent that opens ten thousand connections takes its own line and no
// more: the gateway lives, far from what its container may have, and serves
// when they are gone.
func TestAFloodFromABoxIsSurvived(t *testing.T) {
	t.Parallel()
	places(t, func(t *testing.T, u *user) {
		harness.Copy(t, filepath.Join(filepath.Dir(binary), "flood"), u.project)
		r := u.start(until("go") + `
			a=$(getent ahostsv4 ` + stub.Echo + ` | cut -d' ' -f1 | head -n 1)
			until [ -e enough ]; do sleep 0.1; done | ./flood 10000 127.0.0.1:3128 "$a:443" 192.0.2.1:80 > flooded
			for i in $(seq 3000); do ` + get + ` >/dev/null && echo served > served && exit 7; sleep 0.1; done`)
		// Its own memory: the pages of the program are the kernel's to share and to
		// drop, and as many as the machine has read ahead.
		rest := r.status("RssAnon")
		if rest > 10<<10 {
			t.Errorf("the gateway takes %d KiB at rest, want at most 10 MiB", rest)
		}
		u.say("go")
		var said []byte
		harness.WaitFor(t, "the flood stands", func() bool {
			said, _ = os.ReadFile(filepath.Join(u.project, "flooded"))
			return strings.HasSuffix(string(said), "\n")
		})
		var open, closed, failed int
		if _, err := fmt.Sscanf(string(said), "open %d closed %d failed %d\n", &open, &closed, &failed); err != nil ||
			open+closed != 10_000 || failed != 0 {
			t.Errorf("the flood says %q, %v: want 10000 open or closed", said, err)
		}
		peak := r.status("VmHWM")
		t.Logf("%s: at rest %d KiB, at most %d KiB; %s", u.engine, rest, peak, strings.TrimSpace(string(said)))
		if peak > 128<<10 {
			t.Errorf("the gateway took %d KiB, want at most half of its container's 256 MiB", peak)
		}
		u.say("enough")
		if res := r.end(); res.code != 7 || !u.made("served") {
			t.Errorf("after the flood: exit %d, want 7 and service\n%s", res.code, res.err)
		}
		r.nothing()
	})
}

// In a real container, seen from the host: not a thread of it has anything
// left once it serves.
func TestNoThreadOfARealGatewayHasAPrivilege(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, u *user) {
		r := u.start("for i in 1 2 3 4 5 6 7 8; do " + get + " >/dev/null & done; wait; echo asked > asked; " +
			until("enough"))
		harness.WaitFor(t, "the box's requests", func() bool { return u.made("asked") })
		files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", r.gateway.pid))
		if len(files) < 2 {
			t.Fatalf("the gateway has the threads %q, want some", files)
		}
		for _, file := range files {
			status, err := os.ReadFile(file)
			if isGone(err) {
				continue // the thread has ended
			}
			seen := 0
			for line := range strings.Lines(string(status)) {
				key, value, _ := strings.Cut(line, ":")
				value = strings.Join(strings.Fields(value), " ")
				want := map[string]string{"CapInh": "0000000000000000", "CapPrm": "0000000000000000", "CapEff": "0000000000000000",
					"CapBnd": "0000000000000000", "CapAmb": "0000000000000000", "Uid": "65532 65532 65532 65532",
					"Gid": "65532 65532 65532 65532", "Groups": "", "NoNewPrivs": "1", "Seccomp": "2"}
				if wanted, ok := want[key]; ok {
					seen++
					if value != wanted {
						t.Errorf("%s: %s", file, strings.TrimSpace(line))
					}
				}
			}
			if seen != 10 {
				t.Errorf("%s has %d of ten lines: %s", file, seen, status)
			}
		}
		u.say("enough")
		if res := r.end(); res.code != 0 {
			t.Errorf("exit %d: %s", res.code, res.err)
		}
	})
}
