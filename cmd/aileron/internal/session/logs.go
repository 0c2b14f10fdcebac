package session

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
	"github.com/ALRubinger/aileron/internal/console"
	"github.com/ALRubinger/aileron/internal/detached"
	"github.com/ALRubinger/aileron/internal/failure"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/internal/launch"
	"github.com/ALRubinger/aileron/internal/session"
	"github.com/ALRubinger/aileron/internal/terminal"
)

type sessionLogsOptions struct {
	follow bool
	tail   string
	raw    bool
}

func newSessionLogsCommand(a *cli.App) *cobra.Command {
	opts := &sessionLogsOptions{}
	cmd := &cobra.Command{
		Use:   "logs ID",
		Short: "Print what the command of a detached session has written",
		Long: `Print what the command of a detached session has written to its terminal: the
end of it, if that is long. On a terminal it is printed as plain text; a file or
a pipe gets the bytes as they were written, escape sequences and all.`,
		Example: "  aileron session logs 01J…\n  aileron session logs -f --tail 20 01J…",
		Args:    cli.UsageArgs(cobra.ExactArgs(1)),
		RunE:    func(cmd *cobra.Command, args []string) error { return opts.run(cmd.Context(), a, args[0]) },
	}
	f := cmd.Flags()
	f.BoolVarP(&opts.follow, "follow", "f", false, "go on until the session ends")
	f.StringVarP(&opts.tail, "tail", "n", "all", "print the last lines only: a number, or all")
	f.BoolVar(&opts.raw, "raw", false, "print the bytes as they were written to a terminal too")
	return cmd
}

func (o *sessionLogsOptions) run(ctx context.Context, a *cli.App, id string) error {
	tail := -1
	if o.tail != "all" {
		var err error
		if tail, err = strconv.Atoi(o.tail); err != nil || tail < 0 {
			return failure.Usagef("--tail is %q; it must be a number of lines, or all", o.tail)
		}
	}
	home, s, err := a.FindSession(ctx, id)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	out := detached.Output{Home: home, ID: s.ID, Tail: tail}
	if tail < 0 {
		out.Cut = func(n int64) {
			a.Infof("aileron: the first %d bytes are not kept; the last %d MiB are", n, detached.MaxOutput>>20)
		}
	}
	if o.follow {
		out.Alive = untilReported(home, s.ID)
	}
	err = out.Copy(ctx, o.writer(a))
	switch {
	case errors.Is(err, context.Canceled):
		return console.Exit(128 + int(syscall.SIGINT))
	case errors.Is(err, detached.ErrNone) && !s.Detached:
		return hint.New(fmt.Errorf("print the output of the session %s: it was launched without --detach", s.ID),
			"its output went to the terminal in which it was launched")
	case errors.Is(err, detached.ErrNone):
		return hint.New(fmt.Errorf("print the output of the session %s: it is no longer kept", s.ID),
			"that of the last %d sessions is", detached.MaxKept)
	case err != nil:
		return err
	}
	_, _ = io.WriteString(a.Stderr, a.Messages(detached.Messages(home, s.ID)))
	return nil
}

// reportTime is how long the process of a session may take for its last words after its session has ended.
const reportTime = 10 * time.Second

// untilReported returns a function that reports whether a session runs, or its process still writes what became of it.
func untilReported(home, id string) func() bool {
	var ended time.Time
	return func() bool {
		if session.Alive(home, id) {
			return true
		}
		if ended.IsZero() {
			ended = time.Now()
		}
		return detached.IsWritten(home, id) && time.Since(ended) < reportTime
	}
}

// writer returns where the output goes: a terminal gets it as plain text.
func (o *sessionLogsOptions) writer(a *cli.App) io.Writer {
	if o.raw || !launch.IsTerminal(a.Child.Stdout) {
		return a.Child.Stdout
	}
	return terminal.NewPlainWriter(a.Stdout)
}
