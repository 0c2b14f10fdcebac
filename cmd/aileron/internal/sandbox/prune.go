package sandbox

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
	"github.com/ALRubinger/aileron/internal/detached"
	"github.com/ALRubinger/aileron/internal/failure"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/internal/launch"
	"github.com/ALRubinger/aileron/internal/session"
	"github.com/ALRubinger/aileron/sandbox"
)

func newSandboxPruneCommand(a *cli.App) *cobra.Command {
	engine, dir, state, yes := "auto", "", false, false
	cmd := &cobra.Command{
		Use:     "prune",
		Short:   "Remove what killed sessions left behind, and the output of ended ones",
		Example: "  aileron sandbox prune\n  aileron sandbox prune --state --dir .",
		Args:    cli.UsageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := cli.OneOf("sandbox", engine, sandbox.Kinds()...); err != nil {
				return err
			}
			if !state && (dir != "" || yes) {
				return failure.Usagef("--dir and --yes are for --state")
			}
			home, err := a.Home()
			if err != nil {
				return err
			}
			e, err := a.FindEngine(cmd.Context(), engine)
			if err != nil {
				return err
			}
			defer e.Close()
			if state {
				return pruneStates(cmd.Context(), a, e, home, dir, yes)
			}
			n, err := e.Sweep(cmd.Context(), func(id string) bool { return session.Alive(home, id) })
			if err != nil {
				return err
			}
			processes := e.EndOrphans()
			outputs, err := detached.Prune(home, 0, func(id string) bool { return session.Alive(home, id) })
			if err != nil {
				return fmt.Errorf("remove the output of ended sessions: %w", err)
			}
			if a.JSON {
				return a.PrintJSON(map[string]int{"removed": n, "outputs": outputs, "processes": processes})
			}
			a.Infof("aileron: removed %s", hint.Plural(n, "container"))
			if processes > 0 {
				a.Infof("aileron: ended processes of removed containers: %d", processes)
			}
			if outputs > 0 {
				a.Infof("aileron: removed the output of %s", hint.Plural(outputs, "detached session"))
			}
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&engine, "sandbox", engine, "the engine: "+hint.Alternatives(sandbox.Kinds()))
	f.BoolVar(&state, "state", false, "remove the kept states of agents instead")
	f.StringVar(&dir, "dir", "", "with --state: those of this project alone")
	f.BoolVar(&yes, "yes", false, "with --state: do not ask")
	return cmd
}

// pruneStates removes the kept states of agents: those of one project, or all of the home.
func pruneStates(ctx context.Context, a *cli.App, e *sandbox.Engine, home, dir string, yes bool) error {
	states, whose := sandbox.State{Home: home}, "all projects"
	if dir != "" {
		var err error
		if states.Project, _, err = launch.Project(dir, home); err != nil {
			return err
		}
		whose = states.Project
	}
	if !yes {
		if !a.Interactive() {
			return failure.Usagef("there is no terminal to ask for confirmation on; pass --yes to remove the states in %s",
				whose)
		}
		sure, err := a.Confirm(ctx, "Remove the kept states of agents in "+whose+"?", false)
		if err != nil || !sure {
			return err
		}
	}
	n, err := e.RemoveStates(ctx, states)
	if err != nil {
		return err
	}
	if a.JSON {
		return a.PrintJSON(map[string]int{"removed": n})
	}
	a.Infof("aileron: removed %s", hint.Plural(n, "state"))
	return nil
}
