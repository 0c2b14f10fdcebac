package session

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
	"github.com/ALRubinger/aileron/internal/session"
)

func newSessionStopCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:     "stop ID",
		Short:   "Ask a running session to end",
		Example: "  aileron session stop 01J…",
		Args:    cli.UsageArgs(cobra.ExactArgs(1)),
		RunE:    func(cmd *cobra.Command, args []string) error { return sessionStop(cmd.Context(), a, args[0]) },
	}
}

func sessionStop(ctx context.Context, a *cli.App, id string) error {
	home, s, err := a.FindSession(ctx, id)
	if err != nil {
		return err
	}
	switch err := s.Stop(ctx, home); {
	case errors.Is(err, session.ErrEnded):
		a.Infof("aileron: the session %s has ended meanwhile", s.ID)
		return nil
	case err != nil:
		return err
	}
	a.Infof("aileron: %s was asked to end", s.ID)
	return nil
}
