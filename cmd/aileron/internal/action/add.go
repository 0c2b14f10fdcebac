package action

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
	"github.com/ALRubinger/aileron/cmd/aileron/internal/connector"
	"github.com/ALRubinger/aileron/internal/actions"
	"github.com/ALRubinger/aileron/internal/connectors"
	"github.com/ALRubinger/aileron/internal/failure"
	"github.com/ALRubinger/aileron/spec/action"
	"github.com/ALRubinger/aileron/spec/store"
)

type actionAddOptions struct {
	connector.FetchOptions
	yes, replace bool
}

func newActionAddCommand(a *cli.App) *cobra.Command {
	opts := &actionAddOptions{}
	cmd := &cobra.Command{
		Use:   "add SRC...",
		Short: "Add actions, after showing what they do",
		Long: "Add actions, each from a Markdown file with TOML between two lines +++ at its top,\n" +
			"or FQN@VERSION of one that is published. It prints what they call and asks for\n" +
			"confirmation; scripts pass --yes. Another action of the same name is replaced only\n" +
			"with --replace. Running sessions have the action within a second.",
		Example: "  aileron action add ./file-followup.md\n" +
			"  aileron action add github://acme/actions/triage@1.0.0",
		Args: cli.UsageArgs(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error { return opts.run(cmd.Context(), a, args) },
	}
	opts.Register(cmd)
	f := cmd.Flags()
	f.BoolVarP(&opts.yes, "yes", "y", false, "add the actions without confirmation")
	f.BoolVar(&opts.replace, "replace", false, "replace actions of the same name")
	return cmd
}

func (o *actionAddOptions) run(ctx context.Context, a *cli.App, sources []string) error {
	s, err := a.OpenStore()
	if err != nil {
		return err
	}
	l, err := a.Actions()
	if err != nil {
		return err
	}
	adder := actions.Adder{Console: a.Console, Recorder: a.Recorder, Yes: o.yes, Replace: o.replace,
		Fetcher: func(s *store.Store) (*connectors.Fetcher, error) { return o.NewFetcher(a, s) }}
	var fresh []*action.Action
	missing, asked := false, 0
	for _, src := range sources {
		f, err := adder.Read(ctx, s, src)
		if err != nil {
			return err
		}
		// A connector that is not installed yet is what aileron sync installs; anything else is a mistake in the file.
		_, err = actions.Link(s, f)
		if err != nil && !errors.Is(err, store.ErrNotInstalled) {
			return failure.OfInput(fmt.Errorf("add the action %s: %w", f.Name, err), failure.ReasonAction)
		}
		missing = missing || err != nil
		fresh = append(fresh, f)
		there, err := l.Find(f.Name)
		switch {
		case err == nil && actions.IsAdded(there, f): // it was asked about when it was added
			continue
		case err == nil && !o.replace && (there.Action == nil || there.Action.Hash != f.Hash):
			_, err = l.Add(f, false) // returns why not
			return err
		}
		actions.Show(a.Console, s, f)
		asked++
	}
	if err := actions.CommandConflict(s, l, fresh); err != nil {
		fmt.Fprintf(a.Stderr, "\nwarning: no sandbox will start while both are there: %v\n", err)
	}
	if err := adder.Ask(ctx, asked); err != nil {
		return err
	}
	added, err := adder.Add(ctx, s, l, fresh)
	for _, j := range added {
		verb := "added"
		if j.Already {
			verb = "already added"
		}
		if !a.JSON {
			fmt.Fprintf(a.Stdout, "%s %s %s %s\n", verb, j.Name, j.Version, j.Hash)
		}
	}
	if err != nil {
		return err
	}
	if missing {
		a.Infof("next: aileron sync, which installs the connectors that are pinned and not installed")
	}
	switch {
	case !a.JSON:
		return nil
	case len(added) == 1:
		return a.PrintJSON(added[0])
	}
	return a.PrintJSON(added)
}
