package sandbox

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
	"github.com/ALRubinger/aileron/internal/failure"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/internal/launch"
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
			if err := cli.OneOf("sandbox", engine, sandbox.Runtimes()...); err != nil {
				return err
			}
			if !state && (dir != "" || yes) {
				return failure.Usagef("--dir and --yes are for --state")
			}
			home, err := a.Home()
			if err != nil {
				return err
			}
			p := launch.Pruning{Home: home, Kind: engine, Find: a.FindEngine}
			if state {
				return pruneStates(cmd.Context(), a, p, dir, yes)
			}
			found, err := p.Leftovers(cmd.Context())
			if err != nil {
				return err
			}
			if a.JSON {
				return a.PrintJSON(found)
			}
			a.Infof("aileron: removed %s", hint.Plural(found.Containers, "container"))
			if found.Processes > 0 {
				a.Infof("aileron: ended processes of removed containers: %d", found.Processes)
			}
			if found.Outputs > 0 {
				a.Infof("aileron: removed the output of %s", hint.Plural(found.Outputs, "detached session"))
			}
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&engine, "sandbox", engine, "whose: "+hint.Alternatives(sandbox.Runtimes()))
	f.BoolVar(&state, "state", false, "remove the kept states of agents instead")
	f.StringVar(&dir, "dir", "", "with --state: those of this project alone")
	f.BoolVar(&yes, "yes", false, "with --state: do not ask")
	return cmd
}

// pruneStates removes the kept states of agents: those of one project, or all of the home.
func pruneStates(ctx context.Context, a *cli.App, p launch.Pruning, dir string, yes bool) error {
	project, whose := "", "all projects"
	if dir != "" {
		var err error
		if project, _, err = launch.Project(dir, p.Home); err != nil {
			return err
		}
		whose = project
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
	n, err := p.States(ctx, project)
	if err != nil {
		return err
	}
	if a.JSON {
		return a.PrintJSON(map[string]int{"removed": n})
	}
	a.Infof("aileron: removed %s", hint.Plural(n, "state"))
	return nil
}
