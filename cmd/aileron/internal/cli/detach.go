package cli

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/internal/console"
	"github.com/ALRubinger/aileron/internal/detached"
	"github.com/ALRubinger/aileron/internal/failure"
	"github.com/ALRubinger/aileron/internal/terminal"
)

// defaultSize is that of a terminal that is not known.
var defaultSize = terminal.Size{Height: 24, Width: 80}

// Detach runs this command line again, in a process of its own, and returns the session's id when its command has
// begun, or when its proxy serves. The vault is that of opts, if it was opened.
func (a *App) Detach(ctx context.Context, opts *SessionOptions) (id string, err error) {
	size := defaultSize
	if tty := a.ChildTerminal(); tty != nil {
		if s, ok := terminal.SizeOf(tty); ok && s.Height > 0 && s.Width > 0 {
			size = s
		}
	}
	var key []byte
	if opts.Opened != nil && opts.Opened.Unlocked() {
		if key, err = opts.Opened.Key(); err != nil {
			return "", fmt.Errorf("detach the session: %w", err)
		}
		defer clear(key)
	}
	d, err := detached.Start(detached.Handover{Size: size, KeyLength: len(key)}, key, a.args, a.Child.Stdout,
		a.Child.Stderr)
	if err != nil {
		return "", fmt.Errorf("detach the session: %w", err)
	}
	return d.Await(ctx)
}

// PrintDetached prints how a detached session is reached.
func (a *App) PrintDetached(id string) error {
	words := []string{"aileron session attach " + id, "aileron session logs " + id, "aileron session stop " + id}
	if a.JSON {
		return a.PrintJSON(map[string]string{"session_id": id, "attach": words[0], "logs": words[1], "stop": words[2]})
	}
	fmt.Fprintln(a.Stdout, id)
	a.Infof("aileron: session %s is detached", id)
	for i, what := range []string{"see it", "its output", "end it"} {
		a.Infof("  %-11s %s", what, words[i])
	}
	return nil
}

// NewDetachedCommand returns the hidden command that is the process of a detached session, see [App.Detach]. Its
// arguments are a command line with --detach.
func NewDetachedCommand(a *App) *cobra.Command {
	return &cobra.Command{
		Use:    "detached -- ARG…",
		Short:  "Run a session in a process of its own",
		Hidden: true,
		RunE:   func(cmd *cobra.Command, args []string) error { return a.runDetached(cmd.Context(), args) },
	}
}

func (a *App) runDetached(ctx context.Context, args []string) error {
	if a.Detached != nil {
		return failure.Usagef("detached is started by aileron itself")
	}
	d, err := detached.Receive()
	if err != nil {
		return failure.Usagef("detached is started by aileron itself: %v", err)
	}
	// Its messages go to streams of the other process until the command has begun. Without a reader they are lost, but
	// this process must end as it should.
	broken := make(chan os.Signal, 1)
	signal.Notify(broken, syscall.SIGPIPE)
	defer signal.Stop(broken)
	ctx, stop := d.Watch(ctx)
	defer stop()
	a.Detached, a.Initialized = d, true
	root := a.Root(a, args...)
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	code := a.ExitCode(withUsage(cmd, err))
	d.End(code)
	return console.Exit(code)
}
