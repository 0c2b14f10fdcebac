package main

import (
	"github.com/ALRubinger/aileron/internal/session"
	"github.com/spf13/cobra"
)

func newSandboxPruneCommand(a *app) *cobra.Command {
	engine := "auto"
	cmd := &cobra.Command{
		Use:     "prune",
		Short:   "Remove what killed sessions left behind",
		Example: "  aileron sandbox prune",
		Args:    usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := oneOf("sandbox", engine, knownEngines()...); err != nil {
				return err
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
			n, err := e.Sweep(cmd.Context(), func(id string) bool { return session.Alive(home, id) })
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(map[string]int{"removed": n})
			}
			a.infof("aileron: removed %d containers", n)
			return nil
		},
	}
	cmd.Flags().StringVar(&engine, "sandbox", engine, "the engine: "+alternatives(knownEngines()))
	return cmd
}
