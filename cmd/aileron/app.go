package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"

	"golang.org/x/term"

	"github.com/ALRubinger/aileron/internal/filelock"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/internal/launch"
	"github.com/ALRubinger/aileron/internal/termsafe"
	"github.com/ALRubinger/aileron/vault"
)

// app is what all commands share: the three streams, the environment and the global flags. Commands never use os.Stdout
// or os.Getenv themselves, so that a test can run the whole tree in process.
type app struct {
	stdin  io.Reader
	stdout io.Writer // data
	stderr io.Writer // messages for people
	getenv func(string) string

	// child holds the streams as they were given to [Main], for the command that a person runs. Main makes stdout and
	// stderr escape what must not reach a terminal; use these for everything that aileron itself prints.
	child childStreams

	protected *protection // nil where a test has the app in its own process
	locks     filelock.Locker

	vaultOptions []vault.Option // none in a release

	stores openedStore // use openStore()

	asked  bool        // a prompt was shown
	status atomic.Bool // a line of showStatus is on the terminal

	args     []string     // of the command line
	detached *detachedRun // nil but in the process of a detached session

	home     string // --home; use Home()
	json     bool   // --json
	logLevel string // --log-level
}

// childStreams are the streams of a command that aileron runs for a person: its bytes pass unchanged.
type childStreams struct{ stdout, stderr io.Writer }

func osApp(p *protection) *app {
	a := &app{stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, getenv: p.getenv, protected: p}
	if factor, err := strconv.Atoi(testOnlyWorkFactor); err == nil {
		a.vaultOptions = append(a.vaultOptions, vault.TestOnlyWorkFactor(factor))
	}
	return a
}

// withHome returns an app with another home and environment, and the same streams and flags.
func (a *app) withHome(home string, getenv func(string) string) *app {
	return &app{stdin: a.stdin, stdout: a.stdout, stderr: a.stderr, getenv: getenv, child: a.child, protected: a.protected,
		locks: a.locks, vaultOptions: a.vaultOptions, args: a.args, detached: a.detached, home: home, json: a.json,
		logLevel: a.logLevel}
}

// homePath returns aileron's directory as an absolute path: --home, else AILERON_HOME, else ~/.aileron.
func (a *app) homePath() (string, error) {
	dir := a.home
	if dir == "" {
		dir = a.getenv("AILERON_HOME")
	}
	if dir == "" {
		user, err := os.UserHomeDir()
		if err != nil {
			return "", hint.New(fmt.Errorf("find the home directory: %w", err), "pass --home DIR or set AILERON_HOME")
		}
		dir = filepath.Join(user, ".aileron")
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("resolve the home directory: %w", err)
	}
	return dir, nil
}

// Home returns aileron's directory, and creates it with mode 0700 if it does not exist.
func (a *app) Home() (string, error) {
	dir, err := a.homePath()
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", hint.New(fmt.Errorf("create the home directory: %w", err),
			"pass --home DIR with a directory that you may write to")
	}
	return dir, nil
}

// interactive reports whether a person at a terminal can answer a prompt.
func (a *app) interactive() bool {
	f, ok := a.stdin.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// printJSON writes v as one line of JSON to stdout.
func (a *app) printJSON(v any) error {
	enc := json.NewEncoder(a.stdout)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// infof writes a message for a person to stderr, in place of a status: one line, or on a terminal lines that fit it.
func (a *app) infof(format string, args ...any) {
	if a.status.Load() {
		a.showStatus("")
	}
	fmt.Fprintln(a.stderr, a.message(fmt.Sprintf(format, args...)))
}

// childTerminal returns the terminal that the command's stdout is, or nil if it is not one that escape sequences can
// restore.
func (a *app) childTerminal() *os.File {
	tty, ok := a.child.stdout.(*os.File)
	if !ok || !launch.IsTerminal(tty) || a.getenv("TERM") == "dumb" {
		return nil
	}
	return tty
}

// messagesOnTerminal reports whether stderr is a terminal.
func (a *app) messagesOnTerminal() bool { return launch.IsTerminal(a.child.stderr) }

// columns returns the width of the terminal of stderr.
func (a *app) columns() int {
	if f, ok := a.child.stderr.(*os.File); ok {
		if width, _, err := term.GetSize(int(f.Fd())); err == nil && width > 1 {
			return width
		}
	}
	return 80
}

// messageColumns returns the width of the terminal of stderr, or 0 if it is none or its width is unknown.
func (a *app) messageColumns() int {
	tty, ok := a.child.stderr.(*os.File)
	if !ok || !launch.IsTerminal(tty) || a.getenv("TERM") == "dumb" {
		return 0
	}
	columns, _, err := term.GetSize(int(tty.Fd()))
	if err != nil || columns < minTable {
		return 0
	}
	return columns
}

// showStatus writes a line to stderr that the next one overwrites; "" clears it. What the terminal is too narrow for is
// left out: a line that wraps could not be overwritten. It reports whether stderr is a terminal that can do that.
func (a *app) showStatus(text string) bool {
	if !a.messagesOnTerminal() || a.getenv("TERM") == "dumb" {
		return false
	}
	a.status.Store(text != "")
	line := []rune(termsafe.Line(text))
	fmt.Fprintf(a.child.stderr, "\r%s\x1b[K", string(line[:min(len(line), a.columns()-1)]))
	return true
}

// escapeOutput makes stdout and stderr escape what must not reach a terminal. The function that it returns flushes
// them.
func (a *app) escapeOutput() (flush func()) {
	a.child = childStreams{a.stdout, a.stderr}
	out, errs := termsafe.NewWriter(a.stdout), termsafe.NewWriter(a.stderr)
	a.stdout, a.stderr = out, errs
	return func() {
		_, _ = out.Flush(), errs.Flush()
		a.stdout, a.stderr = a.child.stdout, a.child.stderr
	}
}

// Main runs the command line and returns the exit code of CONTRACT section 1.
func Main(ctx context.Context, args []string, a *app) int {
	defer a.escapeOutput()()
	a.args = args
	root := newRootCommand(a)
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	if errors.As(err, new(usageError)) {
		a.json = a.json || asksJSON(args) // a wrong flag before it keeps it from being read
	}
	if a.asked && err != nil && !errors.As(err, new(*launch.ExitError)) {
		a.discardTyped() // the answers to questions that were not asked any more
	}
	return a.exitCode(withUsage(cmd, err))
}
