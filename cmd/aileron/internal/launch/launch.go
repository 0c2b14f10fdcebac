// Package launch has the commands that open sessions: launch, run, sandbox run and proxy. launcher.go makes a session
// of flags and config.toml.
package launch

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
	"github.com/ALRubinger/aileron/internal/connectors"
	"github.com/ALRubinger/aileron/internal/failure"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/internal/launch"
	"github.com/ALRubinger/aileron/internal/session"
	"github.com/ALRubinger/aileron/sandbox"
	"github.com/ALRubinger/aileron/sandbox/agents"
	"github.com/ALRubinger/aileron/spec"
)

func New(a *cli.App) *cobra.Command {
	opts := &cli.SandboxOptions{}
	cmd := &cobra.Command{
		Use:   "launch [AGENT] [flags] [-- ARG…]",
		Short: "Run a coding agent in a sealed sandbox",
		Long: `Run a coding agent in a container that has no network: everything that it sends
goes to the proxy of this session. The project directory is mounted at its own
path and at /home/agent/workspace; the agent's exit code is aileron's.`,
		Example: `  aileron launch --sandbox=podman opencode
  aileron launch --sandbox=docker claude
  aileron launch opencode -- run "explain this repository"`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.KeepGiven, opts.UnattendedGiven = cmd.Flags().Changed("keep"), cmd.Flags().Changed("unattended")
			if err := opts.Check(true); err != nil {
				return err
			}
			at := cmd.ArgsLenAtDash()
			if at > 1 || at < 0 && len(args) > 1 {
				return failure.Usagef("launch takes one agent; its arguments follow --: aileron launch %s -- ARG…", args[0])
			}
			name, args, err := agentOf(cmd.Context(), a, opts, args, len(args) > 0 && at != 0)
			if err != nil {
				return err
			}
			opts.Reported = true
			return launchAgent(cmd.Context(), a, opts, name, args)
		},
	}
	cmd.Flags().BoolVar(&opts.Keep, "keep", true,
		"keep the agent's own state, such as its conversations, for its next session in this project")
	cmd.Flags().BoolVar(&opts.Unattended, "unattended", false,
		"let the agent use its tools without asking, in a sealed sandbox (default: [sandbox] unattended in config.toml)")
	opts.Register(cmd, hint.Alternatives(append(sandbox.Runtimes(), "off (cooperative, on this host)")))
	return cmd
}

// agentOf puts the project's file in force and returns the agent, which is the first argument if it is named and else
// the file's, and the arguments of the agent.
func agentOf(ctx context.Context, a *cli.App, opts *cli.SandboxOptions, args []string, named bool) (
	name string, rest []string, err error,
) {
	if named {
		name, args = args[0], args[1:]
		if _, ok := agents.Find(name); !ok {
			return name, args, nil // launchAgent has the error
		}
	}
	if opts.Engine == "off" {
		err = a.UseProject(ctx, &opts.Session, nil)
	} else {
		err = a.UseProject(ctx, &opts.Session, &opts.Sandbox)
	}
	if file := opts.Project.File; name == "" && file != nil {
		name = file.Agent
	}
	if err == nil && name == "" {
		err = failure.Usagef("launch takes an agent: %s", hint.Listed(agents.Names()))
	}
	return name, args, err
}

func launchAgent(ctx context.Context, a *cli.App, opts *cli.SandboxOptions, name string, args []string) error {
	agent, ok := agents.Find(name)
	if !ok {
		return launch.NoAgent(name)
	}
	for _, r := range agent.Optional {
		opts.Optional = append(opts.Optional, session.Request(r))
	}
	if err := offer(ctx, a, opts, agent); err != nil {
		return err
	}
	unattended, err := isUnattended(a, opts)
	if err != nil {
		return err
	}
	if unattended {
		args, unattended = launch.SwitchOn(&agent, args, a.Infof)
	}
	command := append(append([]string{agent.Commands[0]}, agent.Args...), args...)
	var env []string
	for k, v := range agent.Env {
		env = append(env, k+"="+v)
	}
	if opts.Engine == "off" {
		a.Infof("aileron: --sandbox=off: mediation is by convention only; the agent can read and reach what you can")
		return RunOnHost(ctx, a, &opts.SessionOptions, launch.AgentOnHost(agent, args, a.Getenv, a.Infof))
	}
	keep, err := Keeps(a, opts)
	if err != nil {
		return err
	}
	stateDir := ""
	if keep {
		stateDir = sandbox.StateDir
	}
	return RunSandboxed(ctx, a, opts, launch.Sandbox{
		Agent: agent.Name, Image: sandbox.AgentImage(agent.Name, agent.Recipe),
		Command: command, Needs: launch.AgentNeeds(agent), Prelude: agent.Start(stateDir), NotesAt: agent.NotesAt,
		Keep: keep, Unattended: unattended, Env: env, Layer: launch.LayerOf(agent),
		Opened: func(s *session.Session) { AdviseModel(a, agent, s.Connectors(), &opts.SessionOptions) },
	})
}

// isUnattended reports whether the agent is told not to ask: by the flag, or by config.toml. The latter has no effect
// where the sandbox is known not to be sealed.
func isUnattended(a *cli.App, opts *cli.SandboxOptions) (bool, error) {
	if opts.UnattendedGiven {
		return opts.Unattended, nil
	}
	_, conf, err := a.Settings()
	if err != nil || conf.Sandbox.Unattended == nil || !*conf.Sandbox.Unattended {
		return false, err
	}
	if opts.Engine == "off" || opts.Proxy == "off" {
		a.Infof("aileron: the agent asks as it is configured: unattended in config.toml is for a sealed sandbox")
		return false, nil
	}
	return true, nil
}

// Keeps reports whether the state of an agent is kept: by the flag, or by config.toml.
func Keeps(a *cli.App, opts *cli.SandboxOptions) (bool, error) {
	if opts.KeepGiven {
		return opts.Keep, nil
	}
	_, conf, err := a.Settings()
	return conf.Sandbox.Keep == nil || *conf.Sandbox.Keep, err
}

// AdviseModel warns about an agent without a connector for its model provider: its requests would be denied.
// inForce are the connectors of the session, to which flags or the project's file may have narrowed it.
func AdviseModel(a *cli.App, agent agents.Agent, inForce []*spec.Connector, opts *cli.SessionOptions) {
	by := "--connector"
	if len(opts.Connectors) == 0 && opts.Project.File != nil {
		by = "connectors in " + opts.Project.File.Path
	}
	installed := func() []*spec.Connector { return currentConnectors(a) }
	if text := connectors.ModelAdvice(agent, inForce, installed, by); text != "" {
		a.Infof("aileron: %s", text)
	}
}
