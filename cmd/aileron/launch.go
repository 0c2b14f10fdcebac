package main

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/internal/config"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/internal/launch"
	"github.com/ALRubinger/aileron/internal/session"
	"github.com/ALRubinger/aileron/sandbox"
	"github.com/ALRubinger/aileron/sandbox/agents"
	"github.com/ALRubinger/aileron/spec"
)

func newLaunchCommand(a *app) *cobra.Command {
	opts := &sandboxOptions{}
	cmd := &cobra.Command{
		Use:   "launch [AGENT] [flags] [-- ARG…]",
		Short: "Run a coding agent in a sealed sandbox",
		Long: `Run a coding agent in a container that has no network: everything that it sends
goes to the proxy of this session. The project directory is mounted at
/home/agent/workspace; the agent's exit code is aileron's.`,
		Example: `  aileron launch --sandbox=podman opencode
  aileron launch --sandbox=docker claude
  aileron launch opencode -- run "explain this repository"`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.keepGiven = cmd.Flags().Changed("keep")
			if err := opts.check(true); err != nil {
				return err
			}
			at := cmd.ArgsLenAtDash()
			if at > 1 || at < 0 && len(args) > 1 {
				return usagef("launch takes one agent; its arguments follow --: aileron launch %s -- ARG…", args[0])
			}
			name, args, err := a.agentOf(opts, args, len(args) > 0 && at != 0)
			if err != nil {
				return err
			}
			opts.reported = true
			return a.launchAgent(cmd.Context(), opts, name, args)
		},
	}
	cmd.Flags().BoolVar(&opts.keep, "keep", true,
		"keep the agent's own state, such as its conversations, for its next session in this project")
	opts.register(cmd, alternatives(append(knownEngines(), "off (cooperative, on this host)")))
	return cmd
}

// agentOf puts the project's file in force and returns the agent, which is the first argument if it is named and else
// the file's, and the arguments of the agent.
func (a *app) agentOf(opts *sandboxOptions, args []string, named bool) (name string, rest []string, err error) {
	if named {
		name, args = args[0], args[1:]
		if _, ok := agents.Find(name); !ok {
			return name, args, nil // launchAgent has the error
		}
	}
	if opts.sandbox == "off" {
		err = a.useProject(&opts.sessionOptions, nil)
	} else {
		err = a.useProject(&opts.sessionOptions, opts)
	}
	if file := opts.project.file; name == "" && file != nil {
		name = file.Agent
	}
	if err == nil && name == "" {
		err = usagef("launch takes an agent: %s", agentNames())
	}
	return name, args, err
}

// agentNeeds returns the further commands that an agent's image must have, and the shell in which its tools run.
func agentNeeds(agent agents.Agent) []string { return append(slices.Clone(agent.Commands[1:]), "sh") }

func agentNames() string {
	names := ""
	for i, n := range agents.Names() {
		if i > 0 {
			names += ", "
		}
		names += n
	}
	return names
}

// noAgent returns the error about a name that is not an agent's.
func noAgent(name string) error {
	err := usagef("there is no agent %q; known: %s", name, agentNames())
	if near := nearest(name, agents.Names()); near != "" {
		return didYouMean(err, near)
	}
	return hint.New(err, "for any other command use: aileron sandbox run -- CMD")
}

func (a *app) launchAgent(ctx context.Context, opts *sandboxOptions, name string, args []string) error {
	agent, ok := agents.Find(name)
	if !ok {
		return noAgent(name)
	}
	command := append(append([]string{agent.Commands[0]}, agent.Args...), args...)
	var env []string
	for k, v := range agent.Env {
		env = append(env, k+"="+v)
	}
	for _, r := range agent.Optional {
		opts.optional = append(opts.optional, session.Request(r))
	}
	if err := a.offer(ctx, opts, agent); err != nil {
		return err
	}
	if opts.sandbox == "off" {
		a.infof("aileron: --sandbox=off: mediation is by convention only; the agent can read and reach what you can")
		return a.runOnHost(ctx, &opts.sessionOptions, launch.HostCommand{Agent: agent.Name, Args: command, Env: env})
	}
	keep, err := a.keeps(opts)
	if err != nil {
		return err
	}
	stateDir := ""
	if keep {
		stateDir = sandbox.StateDir
	}
	return a.runSandboxed(ctx, opts, launch.Sandbox{
		Agent: agent.Name, Image: sandbox.AgentImage(agent.Name, agent.Recipe),
		Command: command, Needs: agentNeeds(agent), Prelude: agent.Start(stateDir), NotesAt: agent.NotesAt,
		Keep: keep, Env: env,
		Opened: func(s *session.Session) { a.adviseModel(agent, s.Connectors(), &opts.sessionOptions) },
	})
}

// keeps reports whether the state of an agent is kept: by the flag, or by config.toml.
func (a *app) keeps(opts *sandboxOptions) (bool, error) {
	if opts.keepGiven {
		return opts.keep, nil
	}
	home, err := a.Home()
	if err != nil {
		return false, err
	}
	conf, err := config.Read(home)
	return conf.Sandbox.Keep == nil || *conf.Sandbox.Keep, err
}

// adviseModel warns about an agent without a connector for its model provider: its requests would be denied.
// inForce are the connectors of the session, to which flags or the project's file may have narrowed it.
func (a *app) adviseModel(agent agents.Agent, inForce []*spec.Connector, opts *sessionOptions) {
	of := func(c *spec.Connector) bool { return isModel(c, agent) }
	if slices.ContainsFunc(inForce, of) {
		return
	}
	installed := a.currentConnectors()
	at := slices.IndexFunc(installed, of)
	if at < 0 {
		a.infof("aileron: no connector for a model provider of %[1]s (%[2]s) is installed; "+
			"set it up with: aileron setup %[1]s", agent.Name, strings.Join(agent.Connectors, ", "))
		return
	}
	by := "--connector"
	if len(opts.connectors) == 0 && opts.project.file != nil {
		by = "connectors in " + opts.project.file.Path
	}
	a.infof("aileron: %s leaves out the connector for %s's model provider, and its requests will be denied; add %s",
		by, agent.Name, installed[at].FQN)
}
