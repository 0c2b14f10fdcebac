package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/spec"
	"github.com/ALRubinger/aileron/spec/store"
)

func newConnectorCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "connector",
		Short: "Install and look at connectors: what a session may do",
		Args:  cobra.ArbitraryArgs,
		RunE:  subcommandNeeded,
	}
	cmd.AddCommand(newConnectorInstallCommand(a), newConnectorListCommand(a), newConnectorShowCommand(a), newConnectorVerifyCommand(a),
		newConnectorRemoveCommand(a), newConnectorCheckCommand(a), newConnectorPackCommand(a))
	return cmd
}

// openStore is the connector store of the home.
func (a *app) openStore() (*store.Store, error) {
	home, err := a.Home()
	if err != nil {
		return nil, err
	}
	s, err := store.Open(filepath.Join(home, "store"))
	return s, hint.New(err, "check the rights on %s", home)
}

// installed is what the store of the home holds, in the order of versions.
func (a *app) installed() (*store.Store, []store.Entry, error) {
	s, err := a.openStore()
	if err != nil {
		return nil, nil, err
	}
	entries, err := s.List()
	return s, entries, err
}

func newConnectorListCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "list",
		Short:   "List the installed connectors",
		Example: "  aileron connector list --json",
		Args:    usageArgs(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			_, entries, err := a.installed()
			if err != nil {
				return err
			}
			return a.printEntries(entries)
		},
	}
}

// entryJSON is one installed connector in `connector list` and `verify`.
type entryJSON struct {
	FQN     string `json:"fqn"`
	Version string `json:"version"`
	Hash    string `json:"hash"`
	OK      bool   `json:"ok"`
	Error   string `json:"error,omitempty"`
	Reason  string `json:"reason,omitempty"` // hash_mismatch or connector_unreadable
}

func (a *app) printEntries(entries []store.Entry) error {
	if a.json {
		return a.printJSON(entriesAsJSON(entries))
	}
	if len(entries) == 0 {
		a.sayf("no connector is installed; install one with: aileron connector install DIR")
		return nil
	}
	w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	for _, e := range entries {
		j := entryAsJSON(e)
		state := "ok"
		if !j.OK {
			state = "broken: " + j.Error
			if _, unread := isUnread(e.Err); unread {
				state = "unreadable: " + j.Error
			}
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", first(j.FQN, "-"), first(j.Version, "-"), shortHash(j.Hash), state)
	}
	return w.Flush()
}

func entriesAsJSON(entries []store.Entry) []entryJSON {
	out := []entryJSON{}
	for _, e := range entries {
		out = append(out, entryAsJSON(e))
	}
	return out
}

func entryAsJSON(e store.Entry) entryJSON {
	j := entryJSON{FQN: string(e.FQN), Version: e.Version, Hash: e.Hash, OK: e.Err == nil}
	if e.Err != nil {
		j.Error, j.Reason = strings.Join(strings.Fields(e.Err.Error()), " "), reasonOf(e.Err)
	}
	return j
}

func newConnectorShowCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "show FQN[@VERSION]",
		Short:   "Show what an installed connector grants",
		Example: "  aileron connector show github://alrubinger/aileron-connector-github",
		Args:    usageArgs(cobra.ExactArgs(1)),
		RunE: func(_ *cobra.Command, args []string) error {
			c, err := a.installedConnector(args[0])
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(describeConnector(c))
			}
			printConnector(a.stdout, c)
			return nil
		},
	}
}

// installedConnector finds FQN[@VERSION] in the store: the newest version
// when none is named. It is verified.
func (a *app) installedConnector(name string) (*spec.Connector, error) {
	s, entries, err := a.installed()
	if err != nil {
		return nil, err
	}
	chosen, err := chosenEntries(entries, name)
	if err != nil {
		return nil, err
	}
	found := chosen[len(chosen)-1]
	c, err := s.Load(found.Hash)
	if err != nil {
		return nil, storeHint(err)
	}
	return c, nil
}

// splitVersion takes FQN[@VERSION] apart.
func splitVersion(name string) (spec.FQN, string, error) {
	fqn, version, _ := strings.Cut(name, "@")
	f, err := spec.ParseFQN(fqn)
	if err != nil {
		return "", "", usageError{err}
	}
	return f, version, nil
}

func newConnectorVerifyCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "verify [FQN[@VERSION]]",
		Short:   "Compute the hashes of installed connectors anew",
		Example: "  aileron connector verify",
		Args:    usageArgs(cobra.MaximumNArgs(1)),
		RunE: func(_ *cobra.Command, args []string) error {
			_, entries, err := a.installed()
			if err != nil {
				return err
			}
			if len(args) == 1 {
				if entries, err = chosenEntries(entries, args[0]); err != nil {
					return err
				}
			}
			if err := a.printEntries(entries); err != nil {
				return err
			}
			var broken []error
			for _, e := range entries {
				broken = append(broken, e.Err)
			}
			if err := errors.Join(broken...); err != nil {
				return storeHint(fmt.Errorf("verify the connectors: %w", err))
			}
			return nil
		},
	}
}

// chosenEntries are those of FQN[@VERSION], at least one, in the order of
// versions.
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
		return nil, hint.New(fmt.Errorf("find %s: %w", name, store.ErrNotInstalled), "aileron connector list shows what is installed")
	}
	return chosen, nil
}

func shortHash(h string) string { return h[:min(len(h), len("sha256:")+12)] }
