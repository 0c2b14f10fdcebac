package launch

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/ALRubinger/aileron/internal/procid"
	"github.com/ALRubinger/aileron/internal/session"
	"github.com/ALRubinger/aileron/sandbox"
	"github.com/ALRubinger/aileron/sandbox/engine"
)

// A sandbox outlives an aileron that was killed: its containers belong to the engine. So a second process, the reaper,
// in a session of processes of its own, waits at the end of a pipe whose other end only aileron holds. A word through
// the pipe dismisses it. If the pipe ends without one, aileron was killed or its engine went away, and the reaper
// restores the terminal and removes the sandbox.

// reaper is the other process, seen from aileron.
type reaper struct {
	cmd *exec.Cmd
	in  io.WriteCloser
}

// dismissed is the word that dismisses a reaper.
const dismissed = "."

// startReaper starts a reaper. It shares terminal, if that is not nil.
func startReaper(cmd *exec.Cmd, terminal *sharedTerminal) (*reaper, error) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // a signal for our process group is not for it
	if terminal != nil {
		cmd.Args = append(cmd.Args, "--terminal")
		cmd.ExtraFiles = []*os.File{reaperTTY - 3: terminal.tty, reaperRecord - 3: terminal.record}
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("start the reaper: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the reaper: %w", err)
	}
	return &reaper{cmd: cmd, in: in}, nil
}

// startSandboxReaper starts the reaper of a session's sandbox. terminal is nil if the sandbox has none.
func startSandboxReaper(
	binary, home string, e *sandbox.Engine, session string, terminal *sharedTerminal,
) (*reaper, error) {
	//nolint:gosec,noctx // our own file; it must outlive us
	cmd := exec.Command(binary, "--home", home, "sandbox", "warden",
		"--sandbox", e.Kind(), "--session", session, "--service", e.Service())
	return startReaper(cmd, terminal)
}

// dismiss ends the reaper, unless parts of the sandbox are left: then it goes on alone.
func (r *reaper) dismiss(left bool) {
	if left {
		_ = r.in.Close()
		return
	}
	_, _ = io.WriteString(r.in, dismissed)
	_ = r.in.Close()
	_ = r.cmd.Wait()
}

// SandboxRemains is what a killed launch may leave of a sandbox.
type SandboxRemains struct {
	Home     string
	Engine   string // podman or docker
	Session  string
	Service  string // the engine's process that the launch started; see [procid.Lives]
	Terminal bool   // the reaper shares the launch's terminal
}

// ReapSandbox is the reaper's process. It waits until the launch has ended, which its end of pipe shows, and removes
// what remains unless it was dismissed.
func ReapSandbox(ctx context.Context, pipe io.Reader, r SandboxRemains) error {
	word, err := io.ReadAll(io.LimitReader(pipe, int64(len(dismissed))))
	if err != nil || string(word) == dismissed {
		return err
	}
	if r.Terminal {
		restoreTerminal()
	}
	return untilNothingIsLeft(func() (int, error) {
		busy := procid.Lives(r.Service)
		left, err := r.sweep(ctx)
		if busy {
			left++
		}
		return left, err
	})
}

// untilNothingIsLeft sweeps until two sweeps in a row found nothing: the killed process may still be on its way out,
// and the engine on its way back, or at work for it. The time that an engine takes for a sweep does not count.
func untilNothingIsLeft(sweep func() (left int, err error)) (err error) {
	nothing := 0
	for waited := time.Duration(0); nothing < 2 && waited < reaperTime; waited += sweepPause {
		var left int
		if left, err = sweep(); err == nil && left == 0 {
			nothing++
		} else {
			nothing = 0
		}
		time.Sleep(sweepPause)
	}
	return err
}

const (
	// reaperTime is how long a reaper waits for an engine to come back.
	reaperTime = 30 * time.Second
	sweepPause = 300 * time.Millisecond
	// sweepTime bounds one sweep by an engine that responds.
	sweepTime = 2 * time.Minute
)

// sweep removes what ended sessions left, and returns how many containers of this one were there.
func (r SandboxRemains) sweep(ctx context.Context) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, sweepTime)
	defer cancel()
	e, err := sandbox.Find(ctx, r.Engine, engine.Patience{})
	if err != nil {
		return 0, err
	}
	defer e.Close()
	left, err := e.Count(ctx, r.Session)
	if err != nil {
		return left, err
	}
	_, err = e.Sweep(ctx, func(id string) bool { return id != r.Session && session.Alive(r.Home, id) })
	return left, err
}
