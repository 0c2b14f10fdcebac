package sandbox

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
)

func newSandboxInitCommand(a *cli.App) *cobra.Command {
	dir := ""
	cmd := &cobra.Command{
		Use: "init", Short: "Write a devcontainer for the project",
		Long: `Write .devcontainer/devcontainer.json and .devcontainer/Dockerfile, with comments.
Nothing is overwritten: a project that has one of them gets neither.`,
		Example: "  aileron sandbox init",
		Args:    cli.UsageArgs(cobra.NoArgs),
		RunE: func(_ *cobra.Command, _ []string) error {
			written, err := a.InitDevcontainer(dir)
			if err == nil {
				_, err = fmt.Fprintln(a.Stdout, strings.Join(written, "\n"))
			}
			return err
		},
	}
	cmd.Flags().StringVar(&dir, "dir", "", "project directory (default: the current one)")
	return cmd
}
