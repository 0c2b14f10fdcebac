// Package launch runs one command behind a session of its own: in a sealed sandbox, or on this host.
//
// A [Launcher] holds what all launches of a process share: aileron's directory, how a session is opened, and the
// streams of the command. Its methods are the ways to use a session:
//
//   - [Launcher.Sandboxed] runs a command in a container whose only way out is the session's proxy. Read
//     sandboxed.go downwards for its three steps (prepare, run, end) and for who gets a Ctrl-C. Each step calls down:
//     mount.go, shares.go and git.go have what of this host is in the sandbox, mediation.go how it reaches the proxy,
//     describe.go and environment.go what its command is told, end.go exit codes and causes.
//   - [Launcher.OnHost] runs a command on this host, which uses the proxy if it honours its environment.
//   - [Launcher.OpenHost] serves a session on a TCP port without any command.
//
// So a program that has filled a Launcher runs a command like this:
//
//	err := l.Sandboxed(ctx, launch.Sandbox{Engine: "auto", Image: image, Build: "auto", Command: []string{"sh"}})
//	if exit, ok := errors.AsType[*launch.ExitError](err); ok {
//		return exit.Code // the command's
//	}
//
// A launch that is killed leaves a container or processes behind, and perhaps a terminal in raw mode. So each starts a
// second process beforehand, its reaper: [ReapSandbox] and [ReapCommand] are what that process does.
//
// The package never exits, and prints only through the functions of the Launcher. The error of a launch is an
// [ExitError] where the command decided the exit code.
package launch

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"time"

	"golang.org/x/term"

	"github.com/ALRubinger/aileron/internal/approvals"
	"github.com/ALRubinger/aileron/internal/config"
	"github.com/ALRubinger/aileron/internal/detached"
	"github.com/ALRubinger/aileron/internal/hostfiles"
	"github.com/ALRubinger/aileron/internal/session"
	"github.com/ALRubinger/aileron/sandbox/engine"
	"github.com/ALRubinger/aileron/vault"
)

// Launcher runs commands behind sessions. All fields are required but those that say otherwise.
type Launcher struct {
	Home     string          // aileron's directory, an absolute path
	Config   config.Sandbox  // limits of sandboxes
	Patience engine.Patience // with engines

	// Programs are those that no sandbox may replace. The zero value has none.
	Programs approvals.Programs

	// Open opens the session of a command. Its session ends when stop is requested.
	Open func(ctx context.Context, agent, mode string, stop *session.StopRequest) (*session.Session, error)

	// Vault returns the vault of Home, unlocked if the session is going to need it, and else nil. It is called before an
	// image is built of what a project names. Nil is that none is searched.
	Vault func(ctx context.Context) (*vault.Vault, error)

	// The command's streams, which it gets unchanged.
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	// Detached is the terminal of a command in a sandbox that has none of a person's. Stdin and Stdout are then not used.
	Detached *detached.Terminal
	// Terminal is the command's terminal if escape sequences can restore it; else nil.
	Terminal *os.File
	// Environ is the environment of commands on this host, without the secrets of aileron's own.
	Environ []string
	// Start starts a command on this host. Nil is [exec.Cmd.Start].
	Start func(*exec.Cmd) error
	// WithoutReaper leaves out the reapers of commands on this host. Tests set it, whose program is not aileron.
	WithoutReaper bool

	// Ended is called after the end of a session whose command began. Nil is nothing.
	Ended func(Ended)

	Progress io.Writer                        // gets the output of an image's build
	Infof    func(format string, args ...any) // prints a line for a person
	Report   func(err error)                  // prints an error that does not decide the exit code
	Log      *slog.Logger
}

// Ended is how a session ended.
type Ended struct {
	Session  string
	Agent    string
	Duration time.Duration // of the command
	ExitCode int           // of the command
	Cause    string        // of the end, as session.ended has it
	Requests session.Tally
	Kept     bool // the command's state is there for its next session
	// Changed are the files of the project that a command in a sandbox changed, and that the host would run. Incomplete
	// reports whether there may be more: the project is larger than what is looked at.
	Changed    []hostfiles.Change
	Incomplete bool
}

// ended calls l.Ended with the end of s.
func (l *Launcher) ended(s *session.Session, e Ended) {
	if l.Ended != nil {
		e.Session, e.Requests = s.ID(), s.Tally()
		l.Ended(e)
	}
}

// ExitError is the end of a launch with an exit code of the command, or of a shell for a command that cannot run.
type ExitError struct {
	Code int
	Err  error // what to print about it; nil: nothing
}

// Error returns the text of Err, or the exit code.
func (e *ExitError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("exit status %d", e.Code)
	}
	return e.Err.Error()
}

// Unwrap returns Err.
func (e *ExitError) Unwrap() error { return e.Err }

// ExitCode returns the code with which aileron ends.
func (e *ExitError) ExitCode() int { return e.Code }

// interruptedCode is the exit code of a launch that a Ctrl-C ended: 128 and SIGINT.
const interruptedCode = 130

// interrupted replaces an error that a Ctrl-C caused by its exit code, and prints that.
func (l *Launcher) interrupted(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return err
	}
	l.Infof("aileron: interrupted")
	return &ExitError{Code: interruptedCode}
}

// unrecorded returns the end of a launch whose command ended with code, where err is the error of closing its session.
// Rows that are not in the audit log turn a success into a failure; a failure of the command stays what it is.
func (l *Launcher) unrecorded(code int, err error) error {
	if code == 0 {
		return err
	}
	if err != nil {
		l.Report(err)
	}
	return &ExitError{Code: code}
}

// hasTerminal reports whether the command has the person's terminal.
func (l *Launcher) hasTerminal() bool { return IsTerminal(l.Stdin) && IsTerminal(l.Stdout) }

// IsTerminal reports whether a stream is a terminal.
func IsTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
