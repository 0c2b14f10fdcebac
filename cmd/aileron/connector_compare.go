package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/ALRubinger/aileron/spec"
)

// conflictWith returns why connectors cannot be used together with what is installed, which can be used alone.
func conflictWith(installed map[string]*spec.Connector, fresh []*spec.Connector) error {
	together := maps.Clone(installed)
	for _, c := range fresh {
		if old := together[string(c.FQN)]; old == nil || spec.CompareVersions(old.Version, c.Version) < 0 {
			together[string(c.FQN)] = c
		}
	}
	_, before := spec.NewIndex(slices.Collect(maps.Values(installed)))
	_, after := spec.NewIndex(slices.Collect(maps.Values(together)))
	if before == nil {
		return after
	}
	return nil
}

// printAdded prints the operations that a version adds to another one, or changes: a credential that is bound to the
// connector is used for them, too.
func printAdded(out io.Writer, old, c *spec.Connector) {
	had := map[string]bool{}
	for _, op := range describeConnector(old).Operations {
		had[grantOf(op)] = true
	}
	var added []string
	for _, op := range describeConnector(c).Operations {
		if !had[grantOf(op)] {
			added = append(added, op.Operation)
		}
	}
	if len(added) == 0 {
		fmt.Fprintf(out, "\nallows no operation that the installed version %s does not allow\n", old.Version)
		return
	}
	fmt.Fprintf(out, "\nadded to the installed version %s, or changed: %s\n", old.Version, strings.Join(added, ", "))
}

// grantOf returns what an operation grants, as text to compare.
func grantOf(op operationJSON) string {
	op.Summary = ""
	text, err := json.Marshal(op)
	if err != nil {
		return err.Error() + op.Operation // strings and booleans can be marshalled
	}
	return string(text)
}
