package main

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/spec"
	"github.com/ALRubinger/aileron/spec/store"
)

func newConnectorCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "connector",
		Short: "Install and inspect connectors, which define what a session may do",
		Args:  cobra.ArbitraryArgs,
		RunE:  subcommandNeeded,
	}
	cmd.AddCommand(newConnectorInstallCommand(a), newConnectorListCommand(a), newConnectorShowCommand(a),
		newConnectorVerifyCommand(a), newConnectorRemoveCommand(a), newConnectorCheckCommand(a), newConnectorPackCommand(a))
	return cmd
}

// openStore returns the connector store of the home.
func (a *app) openStore() (*store.Store, error) {
	home, err := a.Home()
	if err != nil {
		return nil, err
	}
	s, err := store.Open(filepath.Join(home, "store"))
	return s, hint.New(err, "check the permissions of %s", home)
}

// installed returns the store of the home and its entries, in the order of their versions.
func (a *app) installed() (*store.Store, []store.Entry, error) {
	s, err := a.openStore()
	if err != nil {
		return nil, nil, err
	}
	entries, err := s.List()
	return s, entries, err
}

// splitVersion splits FQN[@VERSION].
func splitVersion(name string) (spec.FQN, string, error) {
	fqn, version, _ := strings.Cut(name, "@")
	f, err := spec.ParseFQN(fqn)
	if err != nil {
		return "", "", usageError{err}
	}
	return f, version, nil
}

// chosenEntries returns the entries of FQN[@VERSION], at least one, in the order of their versions.
func chosenEntries(entries []store.Entry, name string) ([]store.Entry, error) {
	fqn, version, err := splitVersion(name)
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
		return nil, hint.New(fmt.Errorf("find %s: %w", name, store.ErrNotInstalled),
			"see what is installed with: aileron connector list")
	}
	return chosen, nil
}
