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

// printCatalog prints what can be installed by name, and what of it is installed.
func printCatalog(a *cli.App, installed []store.Entry) error {
	all := []connectors.CatalogJSON{}
	for _, e := range catalog.List() {
		j, err := connectors.DescribeCatalog(e, installed)
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

// shortHosts returns hosts as one line, without the port of https.
func shortHosts(hosts []string) string {
	short := make([]string, len(hosts))
	for i, h := range hosts {
		short[i] = strings.TrimSuffix(h, ":443")
	}
	return strings.Join(short, " ")
}
