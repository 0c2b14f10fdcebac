package main

import (
	"fmt"
	"io"
	"os/exec"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/sandbox"
)

// A box outlives an aileron that was killed: its containers belong to the
// engine. So a second process, in a session of its own, waits at the end of a
// pipe whose other end only the first one holds. It ends with a word through
// the pipe; without one the first was killed, and the warden removes its box.

// warden is the other process, seen from the first.
type warden struct {
	cmd *exec.Cmd
	in  io.WriteCloser
}

// dismissed is the word with which a warden is not needed any more.
const dismissed = "."

func startWarden(binary, home, engine string) (*warden, error) {
	cmd := exec.Command(binary, "--home", home, "sandbox", "warden", "--sandbox", engine) //nolint:gosec,noctx // our own file; it must outlive us
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}                                  // a signal for our process group is not for it
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("start the box's warden: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the box's warden: %w", err)
	}
	return &warden{cmd: cmd, in: in}, nil
}

// dismiss ends the warden. The box is gone.
func (w *warden) dismiss() {
	_, _ = io.WriteString(w.in, dismissed)
	_ = w.in.Close()
	_ = w.cmd.Wait()
}

func newSandboxWardenCommand(a *app) *cobra.Command {
	engine := "auto"
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
			home, err := a.Home()
			if err != nil {
				return err
			}
			// The killed process may still be on its way out.
			for end := time.Now().Add(20 * time.Second); ; time.Sleep(200 * time.Millisecond) {
				if err = a.sweepBoxes(cmd, home, engine); err == nil || time.Now().After(end) {
					return err
				}
			}
		},
	}
	cmd.Flags().StringVar(&engine, "sandbox", engine, "the engine: podman or docker")
	return cmd
}

func (a *app) sweepBoxes(cmd *cobra.Command, home, engine string) error {
	e, err := sandbox.Find(cmd.Context(), engine)
	if err != nil {
		return err
	}
	defer e.Close()
	_, err = e.Sweep(cmd.Context(), func(id string) bool { return alive(home, id) })
	return err
}
