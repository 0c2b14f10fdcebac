package sandbox

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/term"
)

// TerminalState is what has changed of a person's terminal since its sandbox
// began. The zero value is nothing.
type TerminalState struct {
	Raw  bool   // its line discipline is off
	Undo string // switches off what the program in the sandbox switched on
}

// terminal is the person's, which a sandbox uses while it is in raw mode. The
// zero value is no terminal. The sandbox's output passes through it.
type terminal struct {
	in, out *os.File
	changed func(TerminalState)
	state   *term.State
	winch   chan os.Signal

	turn     chan struct{} // held while something is written, or restored
	restored bool          // output that arrives now is not written
	modes    modes
	last     TerminalState // that changed was called with
}

func openTerminal(b box) *terminal {
	in, okIn := b.Stdin.(*os.File)
	out, okOut := b.Stdout.(*os.File)
	if !b.TTY || !okIn || !okOut {
		return &terminal{}
	}
	t := &terminal{in: in, out: out, changed: b.Terminal, turn: make(chan struct{}, 1)}
	if t.changed == nil {
		t.changed = func(TerminalState) {}
	}
	return t
}

// raw puts the terminal into raw mode for the sandbox, until it is restored.
func (t *terminal) raw() error {
	if t.in == nil {
		return nil
	}
	state, err := term.MakeRaw(int(t.in.Fd()))
	if err != nil {
		return fmt.Errorf("prepare the terminal: %w", err)
	}
	t.state, t.winch = state, make(chan os.Signal, 1)
	t.report(TerminalState{Raw: true})
	signal.Notify(t.winch, syscall.SIGWINCH)
	return nil
}

// Write writes the sandbox's output to the terminal, and tracks its modes.
func (t *terminal) Write(p []byte) (int, error) {
	t.turn <- struct{}{}
	defer func() { <-t.turn }()
	if t.restored {
		return len(p), nil
	}
	t.modes.seen = false
	t.modes.scan(p)
	if t.modes.seen {
		t.report(TerminalState{Raw: true, Undo: t.modes.undo()})
	}
	return t.out.Write(p)
}

func (t *terminal) report(now TerminalState) {
	if now != t.last {
		t.last = now
		t.changed(now)
	}
}

// restore restores the terminal. A program that did not end cleanly may have
// left the alternate screen, mouse reporting or a hidden cursor behind:
// what it switched on is switched off. A terminal that takes no output for
// stopGrace gets its line discipline back, and nothing more.
func (t *terminal) restore(clean bool) {
	if t.state == nil {
		return
	}
	signal.Stop(t.winch)
	select {
	case t.turn <- struct{}{}:
		t.restored = true
		if undo := t.modes.undo(); !clean && undo != "" {
			_, _ = t.out.WriteString(undo)
		}
		defer func() { t.report(TerminalState{}); <-t.turn }()
	case <-time.After(stopGrace):
	}
	_ = term.Restore(int(t.in.Fd()), t.state)
}

func (t *terminal) size() (height, width uint, ok bool) {
	if t.out == nil {
		return 0, 0, false
	}
	w, h, err := term.GetSize(int(t.out.Fd()))
	return uint(max(h, 0)), uint(max(w, 0)), err == nil
}

// resized receives a signal for each new size; without a terminal, none.
func (t *terminal) resized() <-chan os.Signal { return t.winch }
