package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/sandbox"
	"github.com/ALRubinger/aileron/sandbox/agents"
)

func newSandboxBuildCommand(a *app) *cobra.Command {
	engine, agent, missing := "auto", "", false
	cmd := &cobra.Command{
		Use:     "build",
		Short:   "Build aileron's base image, or an agent's, anew",
		Example: "  aileron sandbox build --agent opencode",
		Args:    usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := oneOf("sandbox", engine, knownEngines()...); err != nil {
				return err
			}
			image := sandbox.BaseImage()
			if agent != "" {
				found, ok := agents.Find(agent)
				if !ok {
					return usagef("there is no agent %q; known: %s", agent, agentNames())
				}
				image = sandbox.AgentImage(found.Name, found.Recipe)
			}
			policy := "always"
			if missing {
				policy = "auto"
			}
			e, err := a.findEngine(cmd.Context(), engine)
			if err != nil {
				return err
			}
			defer e.Close()
			if _, err := e.EnsureImage(cmd.Context(), image, policy, a.newBuildProgress()); err != nil {
				return err
			}
			if a.json {
				return a.printJSON(map[string]string{"image": image.Ref, "runtime": e.Describe()})
			}
			fmt.Fprintln(a.stdout, image.Ref)
			return nil
		},
	}
	cmd.Flags().StringVar(&engine, "sandbox", engine, "the engine: "+alternatives(knownEngines()))
	cmd.Flags().StringVar(&agent, "agent", "", "build this agent's image")
	cmd.Flags().BoolVar(&missing, "if-missing", false, "only when it is not there")
	return cmd
}
