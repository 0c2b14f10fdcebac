package sandbox

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/term"
)

// terminal is the person's, which a box has while it is in raw mode. The zero
// value is no terminal.
type terminal struct {
	in, out *os.File
	state   *term.State
	winch   chan os.Signal
}

func openTerminal(b Box) *terminal {
	in, okIn := b.Stdin.(*os.File)
	out, okOut := b.Stdout.(*os.File)
	if !b.TTY || !okIn || !okOut {
		return &terminal{}
	}
	return &terminal{in: in, out: out}
}

// raw gives the terminal to the box, until it is restored.
func (t *terminal) raw() error {
	if t.in == nil {
		return nil
	}
	state, err := term.MakeRaw(int(t.in.Fd()))
	if err != nil {
		return fmt.Errorf("prepare the terminal: %w", err)
	}
	t.state, t.winch = state, make(chan os.Signal, 1)
	signal.Notify(t.winch, syscall.SIGWINCH)
	return nil
}

func (t *terminal) restore() {
	if t.state == nil {
		return
	}
	signal.Stop(t.winch)
	_ = term.Restore(int(t.in.Fd()), t.state)
}

func (t *terminal) size() (height, width uint, ok bool) {
	if t.out == nil {
		return 0, 0, false
	}
	w, h, err := term.GetSize(int(t.out.Fd()))
	return uint(max(h, 0)), uint(max(w, 0)), err == nil //nolint:gosec // not negative
}

// resized tells of a new size; without a terminal, never.
func (t *terminal) resized() <-chan os.Signal { return t.winch }
