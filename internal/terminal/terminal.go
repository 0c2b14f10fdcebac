// Package terminal uses the terminal of a person for a program that runs
// elsewhere, and leaves it as it was.
//
// [Open] returns the terminal of two streams, and [Terminal.Raw] begins its use.
// The program's output goes through [Terminal.Write]. [Terminal.Restore] ends it:
// what the program had switched on is switched off, which [Modes] knows.
package terminal

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/term"
)

// State is what has changed of a person's terminal since its use began. The zero
// value is nothing.
type State struct {
	Raw  bool   // its line discipline is off
	Undo string // switches off what the program switched on
}

// Size is the size of a terminal, in characters.
type Size struct{ Height, Width uint }

// SizeOf returns the size of the terminal that a file is.
func SizeOf(tty *os.File) (s Size, ok bool) {
	w, h, err := term.GetSize(int(tty.Fd()))
	return Size{uint(max(h, 0)), uint(max(w, 0))}, err == nil
}

// Terminal is a person's terminal, which a program uses while it is in raw mode.
// The zero value is no terminal. The program's output passes through it.
type Terminal struct {
	in, out *os.File
	changed func(State)
	state   *term.State
	winch   chan os.Signal

	turn     chan struct{} // held while something is written, or restored
	restored bool          // output that arrives now is not written
	modes    Modes
	last     State // that changed was called with
}

// Open returns the terminal of two streams. changed, if it is not nil, is called
// with each change of its state, before that is made.
func Open(in, out *os.File, changed func(State)) *Terminal {
	if changed == nil {
		changed = func(State) {}
	}
	return &Terminal{in: in, out: out, changed: changed, turn: make(chan struct{}, 1)}
}

// Exists reports whether there is a terminal.
func (t *Terminal) Exists() bool { return t.out != nil }

// Raw puts the terminal into raw mode for the program, until it is restored.
func (t *Terminal) Raw() error {
	if t.in == nil {
		return nil
	}
	state, err := term.MakeRaw(int(t.in.Fd()))
	if err != nil {
		return fmt.Errorf("prepare the terminal: %w", err)
	}
	t.state, t.winch = state, make(chan os.Signal, 1)
	t.report(State{Raw: true})
	signal.Notify(t.winch, syscall.SIGWINCH)
	return nil
}

// Write writes the program's output to the terminal, and tracks its modes.
func (t *Terminal) Write(p []byte) (int, error) {
	t.turn <- struct{}{}
	defer func() { <-t.turn }()
	if t.restored {
		return len(p), nil
	}
	t.modes.seen = false
	t.modes.Scan(p)
	if t.modes.seen {
		t.report(State{Raw: true, Undo: t.modes.Undo()})
	}
	return t.out.Write(p)
}

func (t *Terminal) report(now State) {
	if now != t.last {
		t.last = now
		t.changed(now)
	}
}

// outputGrace is how long Restore waits for a terminal that takes no output.
const outputGrace = 5 * time.Second

// Restore restores the terminal. A program that did not end cleanly may have
// left the alternate screen, mouse reporting or a hidden cursor behind:
// what it switched on is switched off. A terminal that takes no output for
// outputGrace gets its line discipline back, and nothing more.
func (t *Terminal) Restore(clean bool) {
	if t.state == nil {
		return
	}
	signal.Stop(t.winch)
	select {
	case t.turn <- struct{}{}:
		t.restored = true
		if undo := t.modes.Undo(); !clean && undo != "" {
			_, _ = t.out.WriteString(undo)
		}
		defer func() { t.report(State{}); <-t.turn }()
	case <-time.After(outputGrace):
	}
	_ = term.Restore(int(t.in.Fd()), t.state)
}

// Size returns the size of the terminal.
func (t *Terminal) Size() (s Size, ok bool) {
	if t.out == nil {
		return s, false
	}
	return SizeOf(t.out)
}

// Resized receives a signal for each new size; without a terminal, none.
func (t *Terminal) Resized() <-chan os.Signal { return t.winch }
