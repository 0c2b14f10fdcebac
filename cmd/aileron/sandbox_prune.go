package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/internal/detached"
	"github.com/ALRubinger/aileron/internal/launch"
	"github.com/ALRubinger/aileron/internal/session"
	"github.com/ALRubinger/aileron/sandbox"
)

func newSandboxPruneCommand(a *app) *cobra.Command {
	engine, dir, state, yes := "auto", "", false, false
	cmd := &cobra.Command{
		Use:     "prune",
		Short:   "Remove what killed sessions left behind, and the output of ended ones",
		Example: "  aileron sandbox prune\n  aileron sandbox prune --state --dir .",
		Args:    usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := oneOf("sandbox", engine, knownEngines()...); err != nil {
				return err
			}
			if !state && (dir != "" || yes) {
				return usagef("--dir and --yes are for --state")
			}
			home, err := a.Home()
			if err != nil {
				return err
			}
			e, err := a.findEngine(cmd.Context(), engine)
			if err != nil {
				return err
			}
			defer e.Close()
			if state {
				return a.pruneStates(cmd.Context(), e, home, dir, yes)
			}
			n, err := e.Sweep(cmd.Context(), func(id string) bool { return session.Alive(home, id) })
			if err != nil {
				return err
			}
			outputs, err := detached.Prune(home, 0, func(id string) bool { return session.Alive(home, id) })
			if err != nil {
				return fmt.Errorf("remove the output of ended sessions: %w", err)
			}
			if a.json {
				return a.printJSON(map[string]int{"removed": n, "outputs": outputs})
			}
			a.infof("aileron: removed %s", plural(n, "container"))
			if outputs > 0 {
				a.infof("aileron: removed the output of %s", plural(outputs, "detached session"))
			}
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&engine, "sandbox", engine, "the engine: "+alternatives(knownEngines()))
	f.BoolVar(&state, "state", false, "remove the kept states of agents instead")
	f.StringVar(&dir, "dir", "", "with --state: those of this project alone")
	f.BoolVar(&yes, "yes", false, "with --state: do not ask")
	return cmd
}

// pruneStates removes the kept states of agents: those of one project, or all of the home.
func (a *app) pruneStates(ctx context.Context, e *sandbox.Engine, home, dir string, yes bool) error {
	states, whose := sandbox.State{Home: home}, "all projects"
	if dir != "" {
		var err error
		if states.Project, _, err = launch.Project(dir, home); err != nil {
			return err
		}
		whose = states.Project
	}
	if !yes {
		if !a.interactive() {
			return usagef("there is no terminal to ask for confirmation on; pass --yes to remove the states in %s", whose)
		}
		sure, err := a.confirm(ctx, "Remove the kept states of agents in "+whose+"?", false)
		if err != nil || !sure {
			return err
		}
	}
	n, err := e.RemoveStates(ctx, states)
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(map[string]int{"removed": n})
	}
	a.infof("aileron: removed %s", plural(n, "state"))
	return nil
}
