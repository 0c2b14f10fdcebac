package connector

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
	"github.com/ALRubinger/aileron/internal/connectors"
	"github.com/ALRubinger/aileron/spec/catalog"
	"github.com/ALRubinger/aileron/spec/store"
)

// catalogJSON is a connector that can be installed by its name.
type catalogJSON struct {
	Name       string                     `json:"name"`
	FQN        string                     `json:"fqn"`
	Version    string                     `json:"version"`
	Hash       string                     `json:"hash"`
	Summary    string                     `json:"summary"`
	Hosts      []string                   `json:"hosts"`
	Credential *connectors.CredentialJSON `json:"credential"` // null: it needs no secret
	Installed  []string                   `json:"installed"`  // the installed versions of the FQN
}

// printCatalog prints what can be installed by name, and what of it is installed.
func printCatalog(a *cli.App, installed []store.Entry) error {
	all := []catalogJSON{}
	for _, e := range catalog.List() {
		j, err := describeEntry(e, installed)
		if err != nil {
			return err
		}
		all = append(all, j)
	}
	if a.JSON {
		return a.PrintJSON(all)
	}
	w := tabwriter.NewWriter(a.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "NAME\tSECRET\tINSTALLED\tWHAT\n")
	for _, j := range all {
		secret := "none"
		if j.Credential != nil {
			secret = j.Credential.Kind
		}
		state := "no"
		if len(j.Installed) > 0 {
			state = strings.Join(j.Installed, ", ")
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", j.Name, secret, state, j.Summary)
		fmt.Fprintf(w, "\t\t\t%s\n", shortHosts(j.Hosts))
	}
	return w.Flush()
}

// describeEntry returns an entry of the catalogue beside what is installed.
func describeEntry(e catalog.Entry, installed []store.Entry) (catalogJSON, error) {
	c, err := store.ReadFS(e.Files)
	if err != nil {
		return catalogJSON{}, fmt.Errorf("read the catalogue: %w", err)
	}
	d := connectors.DescribeConnector(c)
	j := catalogJSON{Name: e.Name, FQN: d.FQN, Version: d.Version, Hash: d.Hash, Summary: e.Summary, Hosts: d.Hosts,
		Credential: d.Credential, Installed: []string{}}
	for _, i := range installed {
		if i.FQN == c.FQN {
			j.Installed = append(j.Installed, i.Version)
		}
	}
	return j, nil
}

// shortHosts returns hosts as one line, without the port of https.
func shortHosts(hosts []string) string {
	short := make([]string, len(hosts))
	for i, h := range hosts {
		short[i] = strings.TrimSuffix(h, ":443")
	}
	return strings.Join(short, " ")
}
