package connector

import (
	"cmp"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
	"github.com/ALRubinger/aileron/internal/connectors"
	"github.com/ALRubinger/aileron/internal/failure"
	"github.com/ALRubinger/aileron/spec/signature"
	"github.com/ALRubinger/aileron/spec/store"
)

func newConnectorListCommand(a *cli.App) *cobra.Command {
	var inCatalog bool
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List the installed connectors, or those that can be installed by name",
		Example: "  aileron connector list --json\n  aileron connector list --catalog",
		Args:    cli.UsageArgs(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			s, entries, err := a.Installed()
			if err != nil {
				return err
			}
			if inCatalog {
				return printCatalog(a, entries)
			}
			return printEntries(a, entries, checkEntries(a, s, entries))
		},
	}
	cmd.Flags().BoolVar(&inCatalog, "catalog", false, "list what can be installed by name")
	return cmd
}

// EntryJSON is one installed connector, as connector list, verify and remove print it.
type EntryJSON struct {
	FQN     string `json:"fqn"`
	Version string `json:"version"`
	Hash    string `json:"hash"`
	OK      bool   `json:"ok"`
	Error   string `json:"error,omitempty"`
	Reason  string `json:"reason,omitempty"` // hash_mismatch, connector_unreadable, or of its signature

	Signature *connectors.SignatureJSON `json:"signature,omitempty"` // none: it is broken, or was removed
}

// checkEntries verifies the signatures of installed connectors that are not broken.
func checkEntries(a *cli.App, s *store.Store, entries []store.Entry) connectors.Publishers {
	all := connectors.Publishers{}
	for _, e := range entries {
		if e.Err == nil {
			all[e.Hash] = connectors.CheckInstalled(a.Dir, s, signature.Claim{FQN: e.FQN, Version: e.Version, Hash: e.Hash})
		}
	}
	return all
}

func printEntries(a *cli.App, entries []store.Entry, by connectors.Publishers) error {
	if a.JSON {
		return a.PrintJSON(entriesAsJSON(entries, by))
	}
	if len(entries) == 0 {
		a.Infof("aileron: no connectors installed; install one with: aileron connector install NAME " +
			"(see aileron connector list --catalog)")
		return nil
	}
	w := tabwriter.NewWriter(a.FittedOut(), 0, 0, 2, ' ', 0)
	for _, e := range entries {
		j := entryAsJSON(e, by)
		state := "ok, " + strings.ReplaceAll(by[e.Hash].State(), "_", " ")
		if p := by[e.Hash]; p.Status.Signed {
			state += " " + p.Status.Key.ID().String()
		}
		switch {
		case e.Err == nil && !j.OK:
			state = "signature refused: " + by[e.Hash].Why()
		case !j.OK:
			state = "broken: " + j.Error
			if _, unread := store.Unreadable(e.Err); unread {
				state = "unreadable: " + j.Error
			}
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", cmp.Or(j.FQN, "-"), cmp.Or(j.Version, "-"), ShortHash(j.Hash), state)
	}
	return w.Flush()
}

func entriesAsJSON(entries []store.Entry, by connectors.Publishers) []EntryJSON {
	out := []EntryJSON{}
	for _, e := range entries {
		out = append(out, entryAsJSON(e, by))
	}
	return out
}

func entryAsJSON(e store.Entry, by connectors.Publishers) EntryJSON {
	j := EntryJSON{FQN: string(e.FQN), Version: e.Version, Hash: e.Hash, OK: e.Err == nil}
	if e.Err != nil {
		j.Error, j.Reason = failure.AsLine(e.Err.Error()), failure.ReasonOf(e.Err)
	}
	if p, ok := by[e.Hash]; ok {
		j.Signature = p.Json()
		if p.Err != nil {
			j.OK, j.Error, j.Reason = false, j.Signature.Error, j.Signature.Reason
		}
	}
	return j
}

func ShortHash(h string) string { return h[:min(len(h), len("sha256:")+12)] }
