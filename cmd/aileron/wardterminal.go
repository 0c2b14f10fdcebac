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
	written := make(chan struct{})
	go func() { // ends with the process where the terminal takes no output
		defer close(written)
		_, _ = tty.WriteString(left.Undo)
	}()
	select {
	case <-written:
	case <-time.After(stopGrace):
	}
	if now, err := unix.IoctlGetTermios(wardTTY, unix.TCGETS); err == nil && *now == left.Between {
		_ = unix.IoctlSetTermios(wardTTY, unix.TCSETS, &left.Before)
	}
}
