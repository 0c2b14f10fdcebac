package main

import (
	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/sandbox"
)

func newSandboxRunCommand(a *app) *cobra.Command {
	opts := &boxOptions{}
	cmd := &cobra.Command{
		Use:   "run [flags] -- CMD [ARG…]",
		Short: "Run any command in a sealed box",
		Example: `  aileron sandbox run -- curl https://api.github.com/user
  aileron sandbox run --image localhost/my/tools -- bash`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := opts.check(false); err != nil {
				return err
			}
			if len(args) == 0 {
				return usagef("sandbox run wants a command: aileron sandbox run -- CMD")
			}
			image := sandbox.Image{Ref: opts.image}
			if opts.image == "" {
				image = sandbox.BaseImage(thisBuild().release)
			}
			return a.runInBox(cmd.Context(), opts, boxPlan{agent: args[0], image: image, command: args})
		},
	}
	opts.register(cmd, "auto, podman or docker")
	cmd.Flags().SetInterspersed(false)
	return cmd
}
