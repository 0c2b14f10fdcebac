package sandbox_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/sandbox"
	"github.com/ALRubinger/aileron/sandbox/engine"
)

// unenforced skips a test of limits without root: only an engine of root's
// certainly has control groups.
func unenforced(t *testing.T, limits []string) {
	t.Helper()
	if os.Geteuid() == 0 {
		t.Fatalf("%q are not enforced", limits)
	}
	t.Skipf("without root this machine does not enforce %q", limits)
}

func TestASandboxHasItsLimitsAndNoSwap(t *testing.T) {
	engines(t, func(t *testing.T, e *sandbox.Engine) {
		b, out, errs := box(t, idleGateway, "sh", "-c", `cd /sys/fs/cgroup
			cat memory.max memory/memory.limit_in_bytes 2>/dev/null
			cat memory.swap.max memory/memory.memsw.limit_in_bytes 2>/dev/null
			cat cpu.max 2>/dev/null || cat cpu/cpu.cfs_quota_us cpu,cpuacct/cpu.cfs_quota_us 2>/dev/null; exit 0`)
		b.Limits = engine.Limits{Memory: 96 << 20, CPUs: 0.5}
		var missing []string
		b.Unenforced = func(names []string) { missing = names }
		if code, err := e.Run(t.Context(), b); code != 0 || err != nil {
			t.Fatalf("Run = %d, %v\n%s", code, err, errs)
		}
		if len(missing) > 0 {
			unenforced(t, missing)
		}
		said := strings.Fields(out.String())
		if len(said) < 3 || said[0] != "100663296" || said[1] != "100663296" && said[1] != "0" || said[2] != "50000" {
			t.Errorf("the kernel's limits of memory, swap and CPU: %q", said)
		}
	})
}

func TestASandboxThatRunsOutOfMemoryIsReported(t *testing.T) {
	for _, c := range []struct {
		name, script string
		code         int
		want         bool
	}{
		{"a child of it", "tail /dev/zero; sleep 5; exit 3", 3, true}, // of the command itself: e2e/faults
		{"a command that kills itself", "kill -KILL $$", 137, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			engines(t, func(t *testing.T, e *sandbox.Engine) {
				// The kernel may take the shell too, before the memory of the first is free; and on a busy machine a sandbox
				// may end before it is looked at again, which happens each second.
				code, got := runInLittleMemory(t, e, c.script)
				for try := 1; try < 5 && c.want && (code != c.code || !got.Memory); try++ {
					code, got = runInLittleMemory(t, e, c.script)
				}
				if code != c.code || got.Memory != c.want || got.Processes {
					t.Errorf("Run = %d, out of %+v; want %d and memory %v", code, got, c.code, c.want)
				}
			})
		})
	}
}

// runInLittleMemory runs a script in a box of 32 MiB and returns its exit code
// and what it ran out of.
func runInLittleMemory(t *testing.T, e *sandbox.Engine, script string) (int, engine.Exhaustion) {
	t.Helper()
	// What happens before a box is looked at for the first time is not seen, and then it is looked at each second.
	b, _, errs := box(t, idleGateway, "sh", "-c", "until [ -e begun ]; do sleep 0.1; done; "+script)
	b.Began = func() {
		if err := os.WriteFile(filepath.Join(b.Dir, "begun"), nil, 0o644); err != nil {
			t.Error(err)
		}
	}
	b.Limits = engine.Limits{Memory: 32 << 20}
	var missing []string
	var got engine.Exhaustion
	b.Unenforced = func(names []string) { missing = names }
	b.Exhausted = func(e engine.Exhaustion) { got = e }
	code, err := e.Run(t.Context(), b)
	if len(missing) > 0 {
		unenforced(t, missing)
	}
	if err != nil {
		t.Fatalf("Run = %v\n%s", err, errs)
	}
	return code, got
}

// Podman's monitor sets the size in its own time: a command that starts
// meanwhile would begin in a terminal of 0 by 0.
func TestATerminalHasItsSizeWhenItsCommandStarts(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, e *sandbox.Engine) {
		if !e.SizesCreated() {
			t.Skip("this engine makes the terminal with the start")
		}
		ctx, name := t.Context(), "test-size-"+strings.ToLower(t.Name()[strings.LastIndex(t.Name(), "/")+1:])
		id := must.Get(e.Create(ctx, engine.Config{Name: fmt.Sprint(name, "-", os.Getpid()), Image: testImage.Ref,
			Command: []string{"stty", "size"}, Stdin: true, TTY: true, Network: "none"}))(t)
		defer func() {
			if err := e.Remove(ctx, id); err != nil {
				t.Error(err)
			}
		}()
		stream := must.Get(e.Attach(ctx, id, engine.AttachOptions{Stdin: true, TTY: true}))(t)
		defer stream.Close()
		monitor := parentOf(t, e, id)
		must.Do(t, syscall.Kill(monitor, syscall.SIGSTOP))
		sized := make(chan error, 1)
		go func() { sized <- e.ResizeCreated(ctx, &engine.Container{ID: id}, 41, 121) }()
		select {
		case err := <-sized:
			t.Errorf("ResizeCreated = %v, before the monitor has set the size", err)
			sized <- nil
		case <-time.After(500 * time.Millisecond): // it waits, as it should
		}
		must.Do(t, syscall.Kill(monitor, syscall.SIGCONT))
		if err := <-sized; err != nil {
			t.Error(err)
		}
		must.Do(t, e.Start(ctx, id))
		var out bytes.Buffer
		if err := stream.CopyTo(&out, &out); err != nil || out.String() != "41 121\r\n" {
			t.Errorf("the command's first size is %q, %v; want 41 121", &out, err)
		}
	})
}

// parentOf returns the parent of a container's first process.
func parentOf(t *testing.T, e *sandbox.Engine, id string) int {
	t.Helper()
	s := must.Get(e.Inspect(t.Context(), id))(t)
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.PID))
	if err != nil {
		t.Fatalf("the engine reports the process %d: %v", s.PID, err)
	}
	var state byte
	var parent int
	fields := string(stat[bytes.LastIndexByte(stat, ')')+1:])
	if _, err := fmt.Sscanf(fields, " %c %d", &state, &parent); err != nil || parent < 2 {
		t.Fatalf("the parent of %d is %d, %v", s.PID, parent, err)
	}
	return parent
}
