package engine

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// ResizeCreated sets the size of the terminal of a container that has been
// created, but not started, and returns once the terminal has it: Podman hands
// the size to the container's monitor, which may apply it after the start. It
// waits for callTime at most, and not at all where the terminal cannot be seen
// from here: an engine of another machine or another namespace of processes, or
// a host without cgroups. It does nothing where [Engine.SizesCreated] is false.
func (e *Engine) ResizeCreated(ctx context.Context, id string, height, width uint) error {
	if !e.SizesCreated() {
		return nil
	}
	if err := e.Resize(ctx, id, height, width); err != nil {
		return err
	}
	s, err := e.Inspect(ctx, id)
	if err != nil || s.PID < 1 {
		return err
	}
	// Its first process is the runtime's until the start: nothing of the image
	// has run.
	tty, err := unix.Open(fmt.Sprintf("/proc/%d/fd/0", s.PID),
		unix.O_RDONLY|unix.O_NOCTTY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil // it cannot be seen
	}
	defer func() { _ = unix.Close(tty) }()
	// Read after the terminal was opened: the number cannot have changed hands.
	if list, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", s.PID)); err != nil || !strings.Contains(string(list), id) {
		return nil // the same
	}
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		size, err := unix.IoctlGetWinsize(tty, unix.TIOCGWINSZ)
		if err != nil || uint(size.Row) == height && uint(size.Col) == width {
			return nil // it is no terminal
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("set the size of the terminal: it has %d rows and %d columns, want %d and %d: %w",
				size.Row, size.Col, height, width, ctx.Err())
		}
	}
}
