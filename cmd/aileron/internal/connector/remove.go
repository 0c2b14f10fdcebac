package connector

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
	"github.com/ALRubinger/aileron/internal/changes"
	"github.com/ALRubinger/aileron/internal/connectors"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/spec/store"
)

func newConnectorRemoveCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "remove NAME[@VERSION]",
		Short: "Remove a connector; running sessions lose it within a second",
		Long: "Remove one version of a connector, or all of them if none is named. Running\n" +
			"sessions lose it within a second. A broken connector whose name is no longer\n" +
			"known can be removed by its hash.",
		Example: "  aileron connector remove github",
		Args:    cli.UsageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			name, version, _ := strings.Cut(args[0], "@")
			if !strings.HasPrefix(name, "sha256:") {
				fqn, err := connectors.NewNames(a.Dir).Resolve(name)
				if err != nil {
					return err
				}
				name = string(fqn)
			}
			s, err := a.OpenStore()
			if err != nil {
				return err
			}
			gone, err := s.Remove(name, version, func(e store.Entry, remove func() error) error {
				about := connectors.AboutConnector(string(e.FQN), e.Version, e.Hash)
				return a.Enact(cmd.Context(), changes.Change{What: audit.ChangeConnectorRemove, About: about}, remove)
			})
			if errors.Is(err, store.ErrNotInstalled) {
				return hint.New(err, "see what is installed with: aileron connector list")
			}
			if err != nil {
				return err
			}
			if a.JSON {
				return a.PrintJSON(connectors.DescribeEntries(gone, nil))
			}
			for _, e := range gone {
				fmt.Fprintf(a.Stdout, "removed %s\n", e)
			}
			return nil
		},
	}
}
