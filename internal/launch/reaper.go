package launch

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ALRubinger/aileron/internal/procid"
	"github.com/ALRubinger/aileron/internal/session"
	"github.com/ALRubinger/aileron/internal/system"
	"github.com/ALRubinger/aileron/internal/terminal"
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
	binary, home string, p *sandbox.Prepared, session string, terminal *sharedTerminal,
) (*reaper, error) {
	service := ""
	if !p.IsNative() {
		service = p.Engine.Service()
	}
	//nolint:gosec,noctx // our own file; it must outlive us
	cmd := exec.Command(binary, "sandbox", "warden", "--home", home,
		"--sandbox", p.Kind(), "--session", session, "--service", service)
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
	Engine   string // podman, docker or native
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
	if r.Engine == sandbox.Native {
		sandbox.SweepNative(r.Session)
		return nil
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
	return left + e.EndOrphans(), err
}

// sharedTerminal shares the state of the person's terminal with the reaper, in a record in memory: an aileron that is
// killed restores nothing itself.
type sharedTerminal struct {
	tty    *os.File // the person's
	record *os.File // in memory
	now    terminalRecord
}

// terminalRecord is what the reaper needs to restore a terminal.
type terminalRecord struct {
	terminal.State
	Before  unix.Termios
	Between unix.Termios // in raw mode
}

// The descriptors that a reaper with a terminal has besides its standard ones.
const (
	reaperTTY    = 3
	reaperRecord = 4
)

// shareTerminal records the state of the terminal before its command begins.
func shareTerminal(tty *os.File) (*sharedTerminal, error) {
	before, err := system.ReadTermios(int(tty.Fd()))
	if err != nil {
		return nil, fmt.Errorf("read the state of the terminal: %w", err)
	}
	record, err := system.MemoryFile("aileron-terminal")
	if err != nil {
		return nil, fmt.Errorf("share the state of the terminal: %w", err)
	}
	t := &sharedTerminal{tty: tty, record: record, now: terminalRecord{Before: *before}}
	t.note(terminal.State{})
	return t, nil
}

// close ends the sharing. The reaper has a descriptor of its own. A nil sharedTerminal does nothing.
func (t *sharedTerminal) close() {
	if t != nil {
		_ = t.record.Close()
	}
}

// note shares the state of the terminal.
func (t *sharedTerminal) note(state terminal.State) {
	if state.Raw && !t.now.Raw {
		if between, err := system.ReadTermios(int(t.tty.Fd())); err == nil {
			t.now.Between = *between
		}
	}
	t.now.State = state
	if raw, err := json.Marshal(t.now); err == nil {
		_, _ = t.record.WriteAt(append(raw, '\n'), 0) // a remainder of a longer record is not read
	}
}

// restoreTerminal restores the terminal that a killed aileron left. A shell that is back already has set the line
// discipline, which is kept.
func restoreTerminal() {
	tty, left, ok := takeTerminal()
	defer tty.Close()
	if !ok || !left.Raw {
		return
	}
	writeBounded(tty, left.Undo)
	if now, err := system.ReadTermios(reaperTTY); err == nil && *now == left.Between {
		_ = system.WriteTermios(reaperTTY, &left.Before)
	}
}

// takeTerminal returns the terminal that the reaper shares, and its last record if it can be read.
func takeTerminal() (tty *os.File, last terminalRecord, ok bool) {
	tty, record := os.NewFile(reaperTTY, "terminal"), os.NewFile(reaperRecord, "terminal record")
	defer record.Close()
	_, err := record.Seek(0, 0)
	ok = err == nil && json.NewDecoder(record).Decode(&last) == nil
	return tty, last, ok
}

// quietReset switches off what full-screen programs switch on, by sequences that change nothing where it is off. What
// shells switch on is not among it.
const quietReset = "\x18\x1b[?2026l\x1b[?9l\x1b[?1000l\x1b[?1001l\x1b[?1002l\x1b[?1003l\x1b[?1005l\x1b[?1006l" +
	"\x1b[?1015l\x1b[?1016l\x1b[?1004l\x1b[?5l\x1b[?1047l\x1b[?7h\x1b[?25h\x1b[4l\x1b(B\x0f\x1b[0m"

// fullReset is for a terminal that no shell has taken back: it resets keys and paste too.
const fullReset = quietReset + "\x1b[?1l\x1b>\x1b[?2004l\x1b[>4m"

// restoreHostTerminal restores the terminal of a command on this host. The command wrote to it past aileron, so what it
// switched on is not known. ours is whether no shell has taken the terminal back, which would have set the line
// discipline.
func restoreHostTerminal(ours bool) {
	tty, left, ok := takeTerminal()
	defer tty.Close()
	reset := quietReset
	if ours {
		reset = fullReset
	}
	writeBounded(tty, reset)
	if ok && ours {
		_ = system.WriteTermios(int(tty.Fd()), &left.Before)
	}
}

// writeBounded writes to a terminal, and gives up after stopGrace: the terminal may accept no output.
func writeBounded(tty *os.File, text string) {
	written := make(chan struct{})
	go func() { // ends with the process if the terminal accepts no output
		defer close(written)
		_, _ = tty.WriteString(text)
	}()
	select {
	case <-written:
	case <-time.After(stopGrace):
	}
}
