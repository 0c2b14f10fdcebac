package launch

import (
	"encoding/json"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ALRubinger/aileron/internal/terminal"
)

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
	before, err := unix.IoctlGetTermios(int(tty.Fd()), unix.TCGETS)
	if err != nil {
		return nil, fmt.Errorf("read the state of the terminal: %w", err)
	}
	fd, err := unix.MemfdCreate("aileron-terminal", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("share the state of the terminal: %w", err)
	}
	record := os.NewFile(uintptr(fd), "terminal record")
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
		if between, err := unix.IoctlGetTermios(int(t.tty.Fd()), unix.TCGETS); err == nil {
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
	tty, record := os.NewFile(reaperTTY, "terminal"), os.NewFile(reaperRecord, "terminal record")
	defer tty.Close()
	defer record.Close()
	var left terminalRecord
	if _, err := record.Seek(0, 0); err != nil || json.NewDecoder(record).Decode(&left) != nil || !left.Raw {
		return
	}
	writeBounded(tty, left.Undo)
	if now, err := unix.IoctlGetTermios(reaperTTY, unix.TCGETS); err == nil && *now == left.Between {
		_ = unix.IoctlSetTermios(reaperTTY, unix.TCSETS, &left.Before)
	}
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
	tty, record := os.NewFile(reaperTTY, "terminal"), os.NewFile(reaperRecord, "terminal record")
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
