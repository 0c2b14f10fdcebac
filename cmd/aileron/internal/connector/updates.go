package connector

import (
	"context"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
	"github.com/ALRubinger/aileron/internal/connectors"
	"github.com/ALRubinger/aileron/internal/hint"
)

// checkUpdates prints the newer versions of all that is installed. A source that does not respond spoils only the line
// of its connector, and is an error at the end.
func (o *FetchOptions) checkUpdates(ctx context.Context, a *cli.App) (err error) {
	s, entries, err := a.Installed()
	if err != nil {
		return err
	}
	f, err := o.NewFetcher(a, s)
	if err != nil {
		return err
	}
	defer func() { err = f.CloseAfter(err) }()
	var updates []connectors.UpdateJSON
	a.ShowStatus("aileron: asking for newer versions of " + hint.Plural(len(connectors.Highest(entries)), "connector"))
	err = a.Interruptible(ctx, func(ctx context.Context) error {
		updates = f.Updates(ctx, connectors.Highest(entries))
		return ctx.Err()
	})
	a.ShowStatus("")
	if err != nil {
		return err
	}
	if a.JSON {
		err = a.PrintJSON(updates)
	} else {
		err = printUpdates(a, updates)
	}
	if err != nil {
		return err
	}
	var failed []error
	for _, u := range updates {
		if u.Err != nil {
			failed = append(failed, u.Err)
		}
	}
	if len(failed) == 0 {
		return nil
	}
	err = fmt.Errorf("ask for newer versions: %d of %s could not be asked: %w", len(failed),
		hint.Plural(len(updates), "connector"), failed[0])
	return hint.New(err, "the other lines are complete; %s", connectors.HintOr(failed[0], "try again"))
}

// printUpdates prints a line for each connector, and how to install what is newer.
func printUpdates(a *cli.App, updates []connectors.UpdateJSON) error {
	if len(updates) == 0 {
		a.Infof("aileron: no connectors installed")
		return nil
	}
	w := tabwriter.NewWriter(a.Stdout, 0, 0, 2, ' ', 0)
	for _, u := range updates {
		state := "up to date"
		switch {
		case u.Error != nil:
			state = "not known: " + u.Error.Message
		case u.Source == "none":
			state = "made on this machine"
		case u.Update != "":
			state = u.Update + " is newer"
		}
		if len(u.Prereleases) > 0 {
			state += " (pre-release: " + strings.Join(u.Prereleases[:min(len(u.Prereleases), 3)], ", ") + ")"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\n", u.FQN, u.Installed, state)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, u := range updates {
		if u.Update != "" {
			a.Infof("next: aileron connector install %s@%s", u.FQN, u.Update)
		}
	}
	return nil
}
