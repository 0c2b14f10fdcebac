// Package console asks a person and prints for a person. Open [Console] first: the streams of a command, with
// messages, statuses and the width of the terminal; then prompt.go and conversation.go for questions, columns.go for
// tables, wrap.go for lines that fit, transfer.go and build_progress.go for what takes a while. It knows no command
// and no flag.
package console

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"sync/atomic"

	"golang.org/x/term"

	"github.com/ALRubinger/aileron/internal/termsafe"
)

// minTable is the least number of columns that a table or a message is laid out for.
const minTable = 32

// Console has the streams of a command.
type Console struct {
	Stdin   io.Reader
	Stdout  io.Writer           // data
	Stderr  io.Writer           // messages for people
	Environ func(string) string // for TERM; nil: no variable is set

	// Child holds the streams as they were given, for the command that a person runs. [Console.EscapeOutput] makes
	// Stdout and Stderr escape what must not reach a terminal; use these for everything that aileron itself prints.
	Child ChildStreams

	Asked  bool        // a prompt was shown
	status atomic.Bool // a line of ShowStatus is on the terminal
}

// ExitError ends the program with a code, and prints nothing: what the command printed is the verdict.
type ExitError struct{ Code int }

// Exit returns an ExitError with a code.
func Exit(code int) ExitError { return ExitError{code} }

func (e ExitError) Error() string { return fmt.Sprintf("exit status %d", e.Code) }

// ChildStreams are the streams of a command that aileron runs for a person: its bytes pass unchanged.
type ChildStreams struct{ Stdout, Stderr io.Writer }

// Interactive reports whether a person at a terminal can answer a prompt.
func (c *Console) Interactive() bool {
	f, ok := c.Stdin.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// PrintJSON writes v as one line of JSON to stdout.
func (c *Console) PrintJSON(v any) error {
	enc := json.NewEncoder(c.Stdout)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// Infof writes a message for a person to stderr, in place of a status: one line, or on a terminal lines that fit it.
func (c *Console) Infof(format string, args ...any) {
	if c.status.Load() {
		c.ShowStatus("")
	}
	fmt.Fprintln(c.Stderr, c.message(fmt.Sprintf(format, args...)))
}

// ChildTerminal returns the terminal that the command's stdout is, or nil if it is not one that escape sequences can
// restore.
func (c *Console) ChildTerminal() *os.File {
	tty, ok := c.Child.Stdout.(*os.File)
	if !ok || !isTerminal(tty) || c.isDumb() {
		return nil
	}
	return tty
}

// MessagesOnTerminal reports whether stderr is a terminal.
func (c *Console) MessagesOnTerminal() bool { return isTerminal(c.Child.Stderr) }

// Columns returns the width of the terminal of stderr.
func (c *Console) Columns() int {
	if f, ok := c.Child.Stderr.(*os.File); ok {
		if width, _, err := term.GetSize(int(f.Fd())); err == nil && width > 1 {
			return width
		}
	}
	return 80
}

// MessageColumns returns the width of the terminal of stderr, or 0 if it is none or its width is unknown.
func (c *Console) MessageColumns() int {
	tty, ok := c.Child.Stderr.(*os.File)
	if !ok || !isTerminal(tty) || c.isDumb() {
		return 0
	}
	columns, _, err := term.GetSize(int(tty.Fd()))
	if err != nil || columns < minTable {
		return 0
	}
	return columns
}

// ShowStatus writes a line to stderr that the next one overwrites; "" clears it. What the terminal is too narrow for is
// left out: a line that wraps could not be overwritten. It reports whether stderr is a terminal that can do that.
func (c *Console) ShowStatus(text string) bool {
	if !c.MessagesOnTerminal() || c.isDumb() {
		return false
	}
	c.status.Store(text != "")
	line := []rune(termsafe.Line(text))
	fmt.Fprintf(c.Child.Stderr, "\r%s\x1b[K", string(line[:min(len(line), c.Columns()-1)]))
	return true
}

// EscapeOutput makes stdout and stderr escape what must not reach a terminal. The function that it returns flushes
// them.
func (c *Console) EscapeOutput() (flush func()) {
	c.Child = ChildStreams{c.Stdout, c.Stderr}
	out, errs := termsafe.NewWriter(c.Stdout), termsafe.NewWriter(c.Stderr)
	c.Stdout, c.Stderr = out, errs
	return func() {
		_, _ = out.Flush(), errs.Flush()
		c.Stdout, c.Stderr = c.Child.Stdout, c.Child.Stderr
	}
}

// OutputColumns returns the width of the terminal of stdout, or 0 if it is none.
func (c *Console) OutputColumns() int {
	tty, ok := c.Child.Stdout.(*os.File)
	if !ok || !isTerminal(tty) || c.isDumb() {
		return 0
	}
	columns, _, err := term.GetSize(int(tty.Fd()))
	if err != nil || columns < 1 {
		return 0
	}
	return max(columns, minTable)
}

// isDumb reports whether the terminal takes no escape sequences.
func (c *Console) isDumb() bool { return c.Environ != nil && c.Environ("TERM") == "dumb" }

// isTerminal reports whether a stream is a terminal.
func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
