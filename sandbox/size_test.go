package sandbox_test

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/sandbox"
	"github.com/ALRubinger/aileron/sandbox/engine"
)

// Podman's monitor sets the size in its own time: a command that starts
// meanwhile would begin in a terminal of 0 by 0.
func TestATerminalHasItsSizeWhenItsCommandStarts(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, e *sandbox.Engine) {
		if !e.SizesCreated() {
			t.Skip("this engine makes the terminal with the start")
		}
		ctx, name := t.Context(), "test-size-"+strings.ToLower(t.Name()[strings.LastIndex(t.Name(), "/")+1:])
		id, err := e.Create(ctx, engine.Config{Name: fmt.Sprint(name, "-", os.Getpid()), Image: testImage.Ref,
			Command: []string{"stty", "size"}, Stdin: true, TTY: true, Network: "none"})
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := e.Remove(ctx, id); err != nil {
				t.Error(err)
			}
		}()
		stream, err := e.Attach(ctx, id, engine.AttachOptions{Stdin: true, TTY: true})
		if err != nil {
			t.Fatal(err)
		}
		defer stream.Close()
		monitor := parentOf(t, e, id)
		if err := syscall.Kill(monitor, syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		sized := make(chan error, 1)
		go func() { sized <- e.ResizeCreated(ctx, id, 41, 121) }()
		select {
		case err := <-sized:
			t.Errorf("ResizeCreated = %v, before the monitor has set the size", err)
			sized <- nil
		case <-time.After(500 * time.Millisecond): // it waits, as it should
		}
		if err := syscall.Kill(monitor, syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
		if err := <-sized; err != nil {
			t.Error(err)
		}
		if err := e.Start(ctx, id); err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if err := stream.CopyTo(&out, &out); err != nil || out.String() != "41 121\r\n" {
			t.Errorf("the command's first size is %q, %v; want 41 121", &out, err)
		}
	})
}

// parentOf returns the parent of a container's first process.
func parentOf(t *testing.T, e *sandbox.Engine, id string) int {
	t.Helper()
	s, err := e.Inspect(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
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
