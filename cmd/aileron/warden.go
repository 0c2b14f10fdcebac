package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/internal/procid"
	"github.com/ALRubinger/aileron/internal/session"
	"github.com/ALRubinger/aileron/sandbox"
	"github.com/ALRubinger/aileron/sandbox/engine"
)

// A box outlives an aileron that was killed: its containers belong to the
// engine. So a second process, in a session of its own, waits at the end of a
// pipe whose other end only the first one holds. It ends with a word through
// the pipe; without one the first was killed, or its engine went away, and the
// warden restores the terminal and removes the box.

// warden is the other process, seen from the first.
type warden struct {
	cmd *exec.Cmd
	in  io.WriteCloser
}

// dismissed is the word with which a warden is not needed any more.
const dismissed = "."

// startWarden starts the warden of a session's box. terminal is nil where the
// box has none.
func startWarden(binary, home string, e *sandbox.Engine, session string, terminal *wardTerminal) (*warden, error) {
	cmd := exec.Command(binary, "--home", home, "sandbox", "warden", "--sandbox", e.Kind(), "--session", session, "--service", e.Service()) //nolint:gosec,noctx // our own file; it must outlive us
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}                                                                                    // a signal for our process group is not for it
	if terminal != nil {
		cmd.Args = append(cmd.Args, "--terminal")
		cmd.ExtraFiles = []*os.File{wardTTY - 3: terminal.tty, wardRecord - 3: terminal.record}
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("start the box's warden: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the box's warden: %w", err)
	}
	return &warden{cmd: cmd, in: in}, nil
}

// dismiss ends the warden, unless something of the box is left: then it goes
// on alone.
func (w *warden) dismiss(left bool) {
	if left {
		_ = w.in.Close()
		return
	}
	_, _ = io.WriteString(w.in, dismissed)
	_ = w.in.Close()
	_ = w.cmd.Wait()
}

func newSandboxWardenCommand(a *app) *cobra.Command {
	engine, session, service, terminal := "auto", "", "", false
	cmd := &cobra.Command{
		Use:    "warden",
		Short:  "Wait for the end of a session, and remove its box if nobody else does",
		Hidden: true,
		Args:   usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			said, err := io.ReadAll(io.LimitReader(a.stdin, int64(len(dismissed))))
			if err != nil || string(said) == dismissed {
				return err
			}
			if terminal {
				restoreTerminal()
			}
			home, err := a.Home()
			if err != nil {
				return err
			}
			return untilNothingIsLeft(func() (int, error) {
				busy := procid.Lives(service)
				left, err := sweepBoxes(cmd.Context(), home, engine, session)
				if busy {
					left++
				}
				return left, err
			})
		},
	}
	cmd.Flags().StringVar(&engine, "sandbox", engine, "the engine: podman or docker")
	cmd.Flags().StringVar(&session, "session", session, "the session whose box it is")
	cmd.Flags().StringVar(&service, "service", service, "the engine's process that the session started")
	cmd.Flags().BoolVar(&terminal, "terminal", false, "restore the terminal of descriptor 3 by the record of descriptor 4")
	return cmd
}

// untilNothingIsLeft sweeps until it has found nothing twice: the killed process
// may still be on its way out, and the engine on its way back or at work for
// it. The time that an engine takes for a sweep does not count.
func untilNothingIsLeft(sweep func() (left int, err error)) (err error) {
	nothing := 0
	for waited := time.Duration(0); nothing < 2 && waited < wardenTime; waited += sweepPause {
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
	// wardenTime is how long a warden waits for an engine to come back.
	wardenTime = 30 * time.Second
	sweepPause = 300 * time.Millisecond
	// sweepTime bounds one sweep by an engine that lives.
	sweepTime = 2 * time.Minute
)

// sweepBoxes removes what ended sessions left, and returns how many containers
// of this one were there.
func sweepBoxes(ctx context.Context, home, kind, ended string) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, sweepTime)
	defer cancel()
	e, err := sandbox.Find(ctx, kind, engine.Patience{})
	if err != nil {
		return 0, err
	}
	defer e.Close()
	left, err := e.Count(ctx, ended)
	if err != nil {
		return left, err
	}
	_, err = e.Sweep(ctx, func(id string) bool { return id != ended && session.Alive(home, id) })
	return left, err
}
