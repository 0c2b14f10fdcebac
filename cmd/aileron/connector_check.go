package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/spec"
)

func newConnectorCheckCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "check SRC",
		Short:   "Check a connector's source, and print what it would grant",
		Example: "  aileron connector check ./my-connector\n  aileron connector check github",
		Args:    usageArgs(cobra.ExactArgs(1)),
		RunE: func(_ *cobra.Command, args []string) error {
			c, err := a.readConnector(args[0])
			if err != nil {
				return err
			}
			if _, err := spec.NewIndex([]*spec.Connector{c}); err != nil {
				return fmt.Errorf("check %s: %w", args[0], err)
			}
			if a.json {
				return a.printJSON(describeConnector(c))
			}
			printConnector(a.stdout, c)
			return nil
		},
	}
}

// sourceError returns the error for a connector's source that has faults. If it has several, it prints each on a line,
// unless --json is set: then all are in the error.
func (a *app) sourceError(src string, err error) error {
	faults := spec.Diagnostics(err)
	if len(faults) == 0 {
		return err
	}
	if len(faults) == 1 || a.json {
		var all []string
		for _, f := range faults {
			all = append(all, f.Error())
		}
		return hint.New(fmt.Errorf("read the connector %s: %s", src, strings.Join(all, "; ")), seeConnectors)
	}
	for _, f := range faults {
		a.infof("%s", f)
	}
	return hint.New(fmt.Errorf("read the connector %s: %d faults, the first: %w", src, len(faults), faults[0]),
		seeConnectors)
}

// seeConnectors is the hint for faults of a manifest or a spec.
const seeConnectors = "docs/connectors.md describes both files"
