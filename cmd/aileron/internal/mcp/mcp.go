// Package mcp has the command that serves the operations of a session to a client of the Model Context Protocol.
package mcp

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
	launchcmd "github.com/ALRubinger/aileron/cmd/aileron/internal/launch"
	"github.com/ALRubinger/aileron/internal/console"
	"github.com/ALRubinger/aileron/internal/launch"
	"github.com/ALRubinger/aileron/internal/mcpserver"
)

// New returns the command.
func New(a *cli.App) *cobra.Command {
	opts := &cli.SessionOptions{Quiet: true}
	cmd := &cobra.Command{
		Use:   "mcp",
		Short: "Serve the operations of a session as tools of MCP, on stdin and stdout",
		Long: `Serve operations as tools of the Model Context Protocol: a client, such as an
agent, an IDE or a desktop app, starts this command. Behind aileron run or
launch, the operations and the flags are those of their session; elsewhere it
opens one of its own. It asks nothing: unlock the vault before, for example with
aileron vault unlock --for 8h.`,
		Example: `  claude mcp add aileron -- aileron mcp
  aileron mcp --connector github`,
		Args: cli.UsageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := opts.Check(); err != nil {
				return err
			}
			return serve(cmd.Context(), a, opts)
		},
	}
	opts.Register(cmd)
	opts.RegisterProject(cmd)
	return cmd
}

// serve serves stdin and stdout.
func serve(ctx context.Context, a *cli.App, opts *cli.SessionOptions) error {
	c := mcpserver.Command{Options: mcpserver.Options{Version: a.Build.String()}, Getenv: a.Getenv, In: a.Stdin,
		Out: a.Child.Stdout} // its bytes as they are
	a.Stdin = strings.NewReader("") // nothing may be asked there
	c.Launcher = func() (*launch.Launcher, error) {
		if err := a.UseProject(ctx, &opts.Session, nil); err != nil {
			return nil, err
		}
		return launchcmd.Launcher(a, opts)
	}
	code, err := c.Run(ctx)
	if err != nil || code == 0 {
		return err
	}
	return console.Exit(code)
}
