package main

import (
	"cmp"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/spec/signature"
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
			s, entries, err := a.installed()
			if err != nil {
				return err
			}
			if inCatalog {
				return a.printCatalog(entries)
			}
			return a.printEntries(entries, a.checkEntries(s, entries))
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
	Reason  string `json:"reason,omitempty"` // hash_mismatch, connector_unreadable, or of its signature

	Signature *signatureJSON `json:"signature,omitempty"` // none: it is broken, or was removed
}

// checkEntries verifies the signatures of installed connectors that are not broken.
func (a *app) checkEntries(s *store.Store, entries []store.Entry) publishers {
	all := publishers{}
	for _, e := range entries {
		if e.Err == nil {
			all[e.Hash] = a.checkInstalled(s, signature.Claim{FQN: e.FQN, Version: e.Version, Hash: e.Hash})
		}
	}
	return all
}

func (a *app) printEntries(entries []store.Entry, by publishers) error {
	if a.json {
		return a.printJSON(entriesAsJSON(entries, by))
	}
	if len(entries) == 0 {
		a.infof("aileron: no connectors installed; install one with: aileron connector install NAME " +
			"(see aileron connector list --catalog)")
		return nil
	}
	w := tabwriter.NewWriter(a.fittedOut(), 0, 0, 2, ' ', 0)
	for _, e := range entries {
		j := entryAsJSON(e, by)
		state := "ok, " + strings.ReplaceAll(by[e.Hash].state(), "_", " ")
		if p := by[e.Hash]; p.status.Signed {
			state += " " + p.status.Key.ID().String()
		}
		switch {
		case e.Err == nil && !j.OK:
			state = "signature refused: " + by[e.Hash].why()
		case !j.OK:
			state = "broken: " + j.Error
			if _, unread := store.Unreadable(e.Err); unread {
				state = "unreadable: " + j.Error
			}
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", cmp.Or(j.FQN, "-"), cmp.Or(j.Version, "-"), shortHash(j.Hash), state)
	}
	return w.Flush()
}

func entriesAsJSON(entries []store.Entry, by publishers) []entryJSON {
	out := []entryJSON{}
	for _, e := range entries {
		out = append(out, entryAsJSON(e, by))
	}
	return out
}

func entryAsJSON(e store.Entry, by publishers) entryJSON {
	j := entryJSON{FQN: string(e.FQN), Version: e.Version, Hash: e.Hash, OK: e.Err == nil}
	if e.Err != nil {
		j.Error, j.Reason = asLine(e.Err.Error()), reasonOf(e.Err)
	}
	if p, ok := by[e.Hash]; ok {
		j.Signature = p.json()
		if p.err != nil {
			j.OK, j.Error, j.Reason = false, j.Signature.Error, j.Signature.Reason
		}
	}
	return j
}

func shortHash(h string) string { return h[:min(len(h), len("sha256:")+12)] }
