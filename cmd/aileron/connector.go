package main

import (
	"path/filepath"
	"strings"
	"sync"

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
		newConnectorVerifyCommand(a), newConnectorRemoveCommand(a), newConnectorCheckCommand(a), newConnectorPackCommand(a),
		newConnectorNewCommand(a), newConnectorTestCommand(a),
		newConnectorSchemaCommand(a), newConnectorKeygenCommand(a), newConnectorKeysCommand(a))
	return cmd
}

// openStore returns the connector store of the home, which is opened once.
func (a *app) openStore() (*store.Store, error) {
	home, err := a.Home()
	if err != nil {
		return nil, err
	}
	a.stores.Lock()
	defer a.stores.Unlock()
	if a.stores.home != home {
		s, err := store.Open(filepath.Join(home, "store"))
		if err != nil {
			return nil, hint.New(err, "check the permissions of %s", home)
		}
		a.stores.home, a.stores.store = home, s
	}
	return a.stores.store, nil
}

// openedStore is the connector store of a home.
type openedStore struct {
	sync.Mutex
	home  string // "": none is open
	store *store.Store
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

// splitVersion splits NAME[@VERSION], and returns the FQN that the name stands for.
func (a *app) splitVersion(name string) (spec.FQN, string, error) {
	name, version, _ := strings.Cut(name, "@")
	fqn, err := a.connectorNames().resolve(name)
	return fqn, version, err
}

// chosenEntries returns the entries of NAME[@VERSION], at least one, in the order of their versions.
func (a *app) chosenEntries(entries []store.Entry, name string) ([]store.Entry, error) {
	fqn, version, err := a.splitVersion(name)
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
		return nil, notInstalled(name, fqn)
	}
	return chosen, nil
}
