// Package cli is what all commands share: [App], the flags of sessions and sandboxes, usage errors, and exit codes.
// What is no flag, word or exit code belongs to a package below internal.
package cli

import (
	"context"
	"errors"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/internal/changes"
	"github.com/ALRubinger/aileron/internal/console"
	"github.com/ALRubinger/aileron/internal/detached"
	"github.com/ALRubinger/aileron/internal/failure"
	"github.com/ALRubinger/aileron/internal/home"
	"github.com/ALRubinger/aileron/internal/launch"
	"github.com/ALRubinger/aileron/internal/project"
	"github.com/ALRubinger/aileron/internal/protect"
	"github.com/ALRubinger/aileron/internal/unlock"
	"github.com/ALRubinger/aileron/vault"
)

// App is what all commands share: the three streams, the home, the environment and the global flags. Commands never use
// os.Stdout or os.Getenv themselves, so that a test can run the whole tree in process.
type App struct {
	*console.Console
	*home.Dir
	unlock.Unlocker
	changes.Recorder
	project.Asker

	Protected *protect.Protection // nil where a test has the app in its own process

	Build    Build                                // what this program was built from
	Root     func(*App, ...string) *cobra.Command // makes the tree of commands, or what a command line needs of it
	args     []string                             // of the command line
	Detached *detached.Run                        // nil but in the process of a detached session

	JSON     bool   // --json
	LogLevel string // --log-level
}

// New returns an app with these streams, and the home and environment of d.
func New(c *console.Console, d *home.Dir) *App {
	a := &App{Console: c, Dir: d, Recorder: changes.Recorder{Dir: d}, Asker: project.Asker{Console: c, Dir: d},
		Unlocker: unlock.Unlocker{Console: c, Dir: d, Recorder: changes.Recorder{Dir: d}},
		LogLevel: "warn"}
	a.Unlock = func(ctx context.Context) (*vault.Vault, error) { return a.OpenFlagless(ctx) }
	c.Environ, d.Warn, d.Logger = d.Environ, c.Infof, a.Logger
	return a
}

// WithHome returns an app with another home and environment, and the same streams and flags.
func (a *App) WithHome(dir string, getenv func(string) string) *App {
	b := New(&console.Console{Stdin: a.Stdin, Stdout: a.Stdout, Stderr: a.Stderr, Child: a.Child},
		&home.Dir{Flag: dir, Environ: getenv, Locks: a.Locks, VaultOptions: a.VaultOptions})
	b.Protected, b.Build, b.Root, b.args, b.Detached = a.Protected, a.Build, a.Root, a.args, a.Detached
	b.JSON, b.LogLevel = a.JSON, a.LogLevel
	return b
}

// Run runs the command line and returns the exit code of CONTRACT section 1.
func (a *App) Run(ctx context.Context, args []string) int {
	defer a.EscapeOutput()()
	a.args = args
	root := a.Root(a, args...)
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	if errors.As(err, new(failure.UsageError)) {
		a.JSON = a.JSON || asksJSON(args) // a wrong flag before it keeps it from being read
	}
	if a.Asked && err != nil && !errors.As(err, new(*launch.ExitError)) {
		a.DiscardTyped() // the answers to questions that were not asked any more
	}
	return a.ExitCode(withUsage(cmd, err))
}

// Logger returns a logger to stderr of the level of --log-level.
func (a *App) Logger() *slog.Logger {
	level := slog.LevelWarn
	_ = level.UnmarshalText([]byte(a.LogLevel)) // one of four
	return slog.New(slog.NewTextHandler(a.Stderr, &slog.HandlerOptions{Level: level}))
}
