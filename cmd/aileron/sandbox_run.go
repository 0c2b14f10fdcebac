package main

import (
	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/internal/launch"
	"github.com/ALRubinger/aileron/sandbox"
)

func newSandboxRunCommand(a *app) *cobra.Command {
	opts := &sandboxOptions{}
	cmd := &cobra.Command{
		Use:   "run [flags] -- CMD [ARG…]",
		Short: "Run any command in a sealed sandbox",
		Example: `  aileron sandbox run -- curl https://api.github.com/user
  aileron sandbox run --image localhost/my/tools -- bash`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := opts.check(false); err != nil {
				return err
			}
			if len(args) == 0 {
				return usagef("sandbox run takes a command: aileron sandbox run -- CMD")
			}
			if err := a.useProject(&opts.sessionOptions, opts); err != nil {
				return err
			}
			return a.runSandboxed(cmd.Context(), opts, launch.Sandbox{
				Agent: args[0], Image: sandbox.BaseImage(), Command: args,
			})
		},
	}
	opts.register(cmd, alternatives(knownEngines()))
	cmd.Flags().SetInterspersed(false)
	return cmd
}
