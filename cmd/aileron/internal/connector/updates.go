package connector

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
	"github.com/ALRubinger/aileron/internal/actions"
	"github.com/ALRubinger/aileron/internal/connectors"
	"github.com/ALRubinger/aileron/internal/hint"
)

func newConnectorOutdatedCommand(a *cli.App) *cobra.Command {
	opts := &FetchOptions{}
	cmd := &cobra.Command{
		Use:   "outdated",
		Short: "List what has a newer version: installed connectors, and what actions pin",
		Long: "List the connectors of which there is a newer version than the installed one, or than\n" +
			"the one that an action pins. connector check without SRC lists those that are up to\n" +
			"date, too. Nothing is installed.",
		Example: "  aileron connector outdated\n  aileron connector outdated --json",
		Args:    cli.UsageArgs(cobra.NoArgs),
		RunE:    func(cmd *cobra.Command, _ []string) error { return opts.checkUpdates(cmd.Context(), a, true) },
	}
	opts.Register(cmd)
	return cmd
}

// checkUpdates prints the newer versions of all that is installed and pinned, or only of what has one. A source that
// does not respond spoils only the line of its connector, and is an error at the end.
func (o *FetchOptions) checkUpdates(ctx context.Context, a *cli.App, outdated bool) (err error) {
	s, entries, err := a.Installed()
	if err != nil {
		return err
	}
	pinned, err := actions.Pins(a.Dir)
	if err != nil {
		return err
	}
	used := append(connectors.Highest(entries), pinned...)
	f, err := o.NewFetcher(a, s)
	if err != nil {
		return err
	}
	defer func() { err = f.CloseAfter(err) }()
	var updates []connectors.UpdateJSON
	a.ShowStatus("aileron: asking for newer versions of " + hint.Plural(len(used), "connector"))
	err = a.Interruptible(ctx, func(ctx context.Context) error {
		updates = f.Updates(ctx, used)
		return ctx.Err()
	})
	a.ShowStatus("")
	if err != nil {
		return err
	}
	failed := connectors.UpdatesError(updates)
	if outdated {
		updates = connectors.Outdated(updates)
	}
	if a.JSON {
		if err := a.PrintJSON(updates); err != nil {
			return err
		}
		return failed
	}
	if err := connectors.PrintUpdates(a.Console, len(used), updates); err != nil {
		return err
	}
	return failed
}
