package main

import (
	"encoding/json"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ALRubinger/aileron/sandbox"
)

// wardTerminal shares the state of the person's terminal with the warden, in a
// record in memory: an aileron that is killed restores nothing itself.
type wardTerminal struct {
	tty    *os.File // the person's
	record *os.File // in memory
	now    terminalRecord
}

// terminalRecord is what the warden needs to restore a terminal.
type terminalRecord struct {
	sandbox.TerminalState
	Before  unix.Termios
	Between unix.Termios // in raw mode
}

// The descriptors that a warden with a terminal has besides its standard ones.
const (
	wardTTY    = 3
	wardRecord = 4
)

// newWardTerminal notes how the terminal is before its box begins.
func newWardTerminal(tty *os.File) (*wardTerminal, error) {
	before, err := unix.IoctlGetTermios(int(tty.Fd()), unix.TCGETS)
	if err != nil {
		return nil, fmt.Errorf("look at the terminal: %w", err)
	}
	fd, err := unix.MemfdCreate("aileron-terminal", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("share the state of the terminal: %w", err)
	}
	w := &wardTerminal{tty: tty, record: os.NewFile(uintptr(fd), "terminal record"), now: terminalRecord{Before: *before}}
	w.note(sandbox.TerminalState{})
	return w, nil
}

// close ends the sharing. The warden has a descriptor of its own.
func (w *wardTerminal) close() {
	if w != nil {
		_ = w.record.Close()
	}
}

// note shares a state of the terminal.
func (w *wardTerminal) note(state sandbox.TerminalState) {
	if state.Raw && !w.now.Raw {
		if between, err := unix.IoctlGetTermios(int(w.tty.Fd()), unix.TCGETS); err == nil {
			w.now.Between = *between
		}
	}
	w.now.TerminalState = state
	if raw, err := json.Marshal(w.now); err == nil {
		_, _ = w.record.WriteAt(append(raw, '\n'), 0) // what a longer record leaves behind it is not read
	}
}

// restoreTerminal restores what a killed aileron has left. A shell that is
// back already has set the line discipline to its own taste, which stays.
func restoreTerminal() {
	tty, record := os.NewFile(wardTTY, "terminal"), os.NewFile(wardRecord, "terminal record")
	defer tty.Close()
	defer record.Close()
	var left terminalRecord
	if _, err := record.Seek(0, 0); err != nil || json.NewDecoder(record).Decode(&left) != nil || !left.Raw {
		return
	}
	writeBounded(tty, left.Undo)
	if now, err := unix.IoctlGetTermios(wardTTY, unix.TCGETS); err == nil && *now == left.Between {
		_ = unix.IoctlSetTermios(wardTTY, unix.TCSETS, &left.Before)
	}
}

// quietReset switches off what full-screen programs switch on, by sequences that
// change nothing where it is off. What a shell has switched on is not among it.
const quietReset = "\x18\x1b[?2026l\x1b[?9l\x1b[?1000l\x1b[?1001l\x1b[?1002l\x1b[?1003l\x1b[?1005l\x1b[?1006l\x1b[?1015l\x1b[?1016l" +
	"\x1b[?1004l\x1b[?5l\x1b[?1047l\x1b[?7h\x1b[?25h\x1b[4l\x1b(B\x0f\x1b[0m"

// fullReset is for a terminal that no shell has taken back: keys and paste, too.
const fullReset = quietReset + "\x1b[?1l\x1b>\x1b[?2004l\x1b[>4m"

// restoreRunTerminal restores the terminal of a command that a killed aileron
// run has left, and which wrote to it past aileron: what it switched on is not
// known. ours reports that no shell has taken the terminal back, which would
// have set the line discipline to its own taste.
func restoreRunTerminal(ours bool) {
	tty, record := os.NewFile(wardTTY, "terminal"), os.NewFile(wardRecord, "terminal record")
	defer tty.Close()
	defer record.Close()
	reset := quietReset
	if ours {
		reset = fullReset
	}
	writeBounded(tty, reset)
	var left terminalRecord
	if _, err := record.Seek(0, 0); err != nil || json.NewDecoder(record).Decode(&left) != nil || !ours {
		return
	}
	_ = unix.IoctlSetTermios(int(tty.Fd()), unix.TCSETS, &left.Before)
}

// writeBounded writes to a terminal, which may take no output.
func writeBounded(tty *os.File, text string) {
	written := make(chan struct{})
	go func() { // ends with the process where the terminal takes no output
		defer close(written)
		_, _ = tty.WriteString(text)
	}()
	select {
	case <-written:
	case <-time.After(stopGrace):
	}
}
