// Package connector has the commands of aileron connector: a file a verb.
package connector

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
	"github.com/ALRubinger/aileron/internal/connectors"
	"github.com/ALRubinger/aileron/spec"
	"github.com/ALRubinger/aileron/spec/store"
)

func New(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "connector",
		Short: "Install and inspect connectors, which define what a session may do",
		Args:  cobra.ArbitraryArgs,
		RunE:  cli.SubcommandNeeded,
	}
	cmd.AddCommand(newConnectorInstallCommand(a), newConnectorListCommand(a), newConnectorShowCommand(a),
		newConnectorVerifyCommand(a), newConnectorRemoveCommand(a), newConnectorCheckCommand(a), newConnectorPackCommand(a),
		newConnectorNewCommand(a), newConnectorTestCommand(a),
		newConnectorSchemaCommand(a), newConnectorKeygenCommand(a), newConnectorKeysCommand(a))
	return cmd
}

// splitVersion splits NAME[@VERSION], and returns the FQN that the name stands for.
func splitVersion(a *cli.App, name string) (spec.FQN, string, error) {
	name, version, _ := strings.Cut(name, "@")
	fqn, err := connectors.NewNames(a.Dir).Resolve(name)
	return fqn, version, err
}

// chosenEntries returns the entries of NAME[@VERSION], at least one, in the order of their versions.
func chosenEntries(a *cli.App, entries []store.Entry, name string) ([]store.Entry, error) {
	fqn, version, err := splitVersion(a, name)
	if err != nil {
		return nil, err
	}
	var chosen []store.Entry
	for _, e := range entries {
		if e.FQN == fqn && (version == "" || e.Version == version) {
			chosen = append(chosen, e)
		}
	}
	if len(chosen) == 0 {
		return nil, connectors.NotInstalled(name, fqn)
	}
	return chosen, nil
}
