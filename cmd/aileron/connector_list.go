package main

import (
	"cmp"
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/spec/store"
)

func newConnectorListCommand(a *app) *cobra.Command {
	var inCatalog bool
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List the installed connectors, or those that can be installed by name",
		Example: "  aileron connector list --json\n  aileron connector list --catalog",
		Args:    usageArgs(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			_, entries, err := a.installed()
			if err != nil {
				return err
			}
			if inCatalog {
				return a.printCatalog(entries)
			}
			return a.printEntries(entries)
		},
	}
	cmd.Flags().BoolVar(&inCatalog, "catalog", false, "list what can be installed by name")
	return cmd
}

// entryJSON is one installed connector, as connector list, verify and remove print it.
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
		a.infof("aileron: no connectors installed; install one with: aileron connector install NAME " +
			"(see aileron connector list --catalog)")
		return nil
	}
	w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	for _, e := range entries {
		j := entryAsJSON(e)
		state := "ok"
		if !j.OK {
			state = "broken: " + j.Error
			if _, unread := store.Unreadable(e.Err); unread {
				state = "unreadable: " + j.Error
			}
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", cmp.Or(j.FQN, "-"), cmp.Or(j.Version, "-"), shortHash(j.Hash), state)
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
		j.Error, j.Reason = asLine(e.Err.Error()), reasonOf(e.Err)
	}
	return j
}

func shortHash(h string) string { return h[:min(len(h), len("sha256:")+12)] }
