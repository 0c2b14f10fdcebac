package session

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
	"github.com/ALRubinger/aileron/internal/console"
	"github.com/ALRubinger/aileron/internal/detached"
	"github.com/ALRubinger/aileron/internal/failure"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/internal/session"
)

func newSessionAttachCommand(a *cli.App) *cobra.Command {
	keys := detached.DefaultKeys
	cmd := &cobra.Command{
		Use:   "attach [ID]",
		Short: "Attach this terminal to a detached session",
		Long: `Attach this terminal to a session that was launched with --detach. The keys
ctrl-p ctrl-q detach it again, and the session goes on; its end ends the command
with the same exit code. One terminal is attached at a time: a later one takes its
place. Without ID it is the one detached session that runs.`,
		Example: "  aileron session attach 01J…",
		Args:    cli.UsageArgs(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := detached.CheckKeys(keys); err != nil {
				return failure.Usagef("--detach-keys: %v", err)
			}
			return sessionAttach(cmd.Context(), a, strings.Join(args, ""), keys)
		},
	}
	cmd.Flags().StringVar(&keys, "detach-keys", keys, "the keys that detach, such as ctrl-a,d")
	return cmd
}

func sessionAttach(ctx context.Context, a *cli.App, id, keys string) error {
	home, err := a.Home()
	if err != nil {
		return err
	}
	s, err := detachedSession(ctx, a, home, id)
	if err != nil {
		return err
	}
	received := make(chan os.Signal, 1)
	signal.Notify(received, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
	defer signal.Stop(received)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	code := 0
	go func() {
		if sig, ok := (<-received).(syscall.Signal); ok {
			code = 128 + int(sig)
			cancel()
		}
	}()
	end, err := detached.Attach(ctx, detached.Attachment{
		Dir: s.Dir(home), In: a.Stdin, Out: a.Child.Stdout, Keys: keys,
		Attached: func(h detached.Hello, onTerminal bool) { reportAttached(a, h, onTerminal, keys) },
	})
	if ctx.Err() != nil {
		a.Infof("aileron: detached from %s by a signal; it goes on", s.ID)
		return console.Exit(code)
	}
	return attachmentEnded(a, s, end, err)
}

// detachedSession returns the running detached session with an id, or the only one.
func detachedSession(ctx context.Context, a *cli.App, home, id string) (session.State, error) {
	l := a.Lister(home)
	if id == "" {
		return onlyDetached(ctx, l)
	}
	s, err := l.Find(ctx, id)
	fail := func(why, remedy string, args ...any) error {
		return hint.New(fmt.Errorf("attach to the session %s: %s", s.ID, why), remedy, args...)
	}
	switch {
	case err != nil:
		return s, err
	case s.State != "running" && s.Detached && detached.Has(home, s.ID):
		return s, fail("it has ended", "see its output with: aileron session logs %s", s.ID)
	case s.State != "running":
		return s, fail("it has ended", "see how with: aileron session show %s", s.ID)
	case s.Detached && !s.Attachable():
		return s, fail("it is a proxy without a command", "see its messages with: aileron session logs %[1]s; "+
			"end it with: aileron session stop %[1]s", s.ID)
	case !s.Detached:
		return s, fail("it was launched without --detach, and runs in a terminal of its own",
			"see what runs with: aileron session list")
	}
	return s, nil
}

// onlyDetached returns the one detached session that runs.
func onlyDetached(ctx context.Context, l session.Lister) (session.State, error) {
	all, err := l.List(ctx)
	if err != nil {
		return session.State{}, err
	}
	var ids []string
	var only session.State
	for _, s := range all {
		if s.State == "running" && s.Attachable() {
			ids, only = append(ids, s.ID), s
		}
	}
	switch len(ids) {
	case 0:
		return only, hint.New(errors.New("attach to a session: no detached session runs"),
			"start one with: aileron launch --detach AGENT")
	case 1:
		return only, nil
	}
	return only, failure.Usagef("session attach takes an ID: %s run detached", hint.Listed(ids))
}

// reportAttached prints to what a terminal is attached, and how it is detached.
func reportAttached(a *cli.App, h detached.Hello, onTerminal bool, keys string) {
	if h.Taken != 0 {
		a.Infof("aileron: the terminal of process %d was attached; this one takes its place", h.Taken)
	}
	if onTerminal {
		a.Infof("aileron: attached to %s (%s); %s detaches, and it goes on", h.Session, h.Agent, keys)
	}
}

// attachmentEnded returns the end of the command, by that of the attachment.
func attachmentEnded(a *cli.App, s session.State, end detached.End, err error) error {
	again := "aileron session attach " + s.ID
	switch taken := (*detached.TakenError)(nil); {
	case errors.Is(err, detached.ErrDetached):
		fmt.Fprintln(a.Stderr) // the program's line has no end
		a.Infof("aileron: detached from %s, which goes on; attach to it again with: %s", s.ID, again)
		return nil
	case errors.As(err, &taken):
		return hint.New(fmt.Errorf("attach to the session %s: %w", s.ID, err), "take its place again with: %s", again)
	case err != nil:
		return hint.New(fmt.Errorf("attach to the session %s: %w", s.ID, err),
			"see what became of it with: aileron session show %s", s.ID)
	}
	_, _ = io.WriteString(a.Stderr, a.Messages(end.Messages))
	if end.Code != 0 {
		return console.Exit(end.Code)
	}
	return nil
}
