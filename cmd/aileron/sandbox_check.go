package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/internal/trust"
	"github.com/ALRubinger/aileron/sandbox"
	"github.com/ALRubinger/aileron/sandbox/agents"
)

func newSandboxCheckCommand(a *app) *cobra.Command {
	opts, agent := &boxOptions{}, ""
	cmd := &cobra.Command{
		Use:   "check --agent=CMD",
		Short: "Check that an image can run a command, without a session",
		Long: `Prepare the image as launch does, and look for what launch looks for before it
starts an agent: the image's user, its architecture, the command on its PATH, a
shell for an agent known by name; and whether the command may write to the
project. Exits with 1 when something is missing, and names it.`,
		Example: `  aileron sandbox check --agent=opencode
  aileron sandbox check --image localhost/my/tools --agent=bash`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := opts.checkBox(false); err != nil {
				return err
			}
			if agent == "" {
				return usagef("sandbox check wants a command: aileron sandbox check --agent=CMD")
			}
			return a.checkSandbox(cmd.Context(), opts, agent)
		},
	}
	opts.registerBox(cmd, "auto, podman or docker")
	cmd.Flags().StringVar(&agent, "agent", "", "an agent by name, or any command")
	return cmd
}

// sandboxReport is what `sandbox check` prints.
type sandboxReport struct {
	Tier    string   `json:"tier"`
	Runtime string   `json:"runtime"`
	Image   string   `json:"image"`
	Command string   `json:"command"`
	Missing []string `json:"missing"`
	Support string   `json:"support"`
}

func (a *app) checkSandbox(ctx context.Context, opts *boxOptions, name string) error {
	image, command, needs := sandbox.BaseImage(thisBuild().release), name, []string(nil)
	if agent, ok := agents.Find(name); ok {
		image, command = sandbox.AgentImage(thisBuild().release, agent.Name, agent.Recipe), agent.Commands[0]
		needs = agentNeeds(agent)
	}
	if opts.image != "" {
		image = sandbox.Image{Ref: opts.image}
	}
	dir, hide, err := a.project(opts)
	if err != nil {
		return err
	}
	engine, err := a.findEngine(ctx, opts.sandbox)
	if err != nil {
		return err
	}
	defer engine.Close()
	if image, err = engine.EnsureImage(ctx, image, opts.build, a.stderr); err != nil {
		return err
	}
	var untrusted *trust.Error
	if err := a.canTrust(ctx, engine, image); err != nil && !errors.As(err, &untrusted) {
		return err
	}
	found, err := engine.Check(ctx, sandbox.Spec{Image: image, Command: []string{command}, Needs: needs, Dir: dir, Mask: hide})
	if err != nil {
		return err
	}
	if untrusted != nil {
		found.Missing = append(found.Missing, fmt.Sprintf("a store that roots can be added to (%s: %v)", untrusted.File, untrusted.Cause))
	}
	r := sandboxReport{Tier: tierOf(image), Runtime: engine.Describe(), Image: image.Ref, Command: first(found.Command, command), Missing: found.Missing, Support: "ok"}
	if len(r.Missing) > 0 {
		r.Support = "missing " + strings.Join(r.Missing, "; ")
	}
	if a.json {
		if r.Missing == nil {
			r.Missing = []string{}
		}
		err = a.printJSON(r)
	} else {
		_, err = fmt.Fprintf(a.stdout, "tier: %s\nruntime: %s\nimage: %s\ncommand: %s\nsupport: %s\n", r.Tier, r.Runtime, r.Image, r.Command, r.Support)
	}
	if err == nil && len(r.Missing) > 0 {
		return exitError{1}
	}
	return err
}
