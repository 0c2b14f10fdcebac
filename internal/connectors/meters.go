package connectors

import (
	"reflect"
	"slices"
	"strings"

	"github.com/ALRubinger/aileron/spec"
)

// printMeters prints the operations whose responses are no longer read for what they use up, or in another place: a
// budget of the owner's may limit nothing then.
func (d *changesPrinter) printMeters(old, c *spec.Connector) {
	now := metersOf(c)
	var changed []string
	for _, t := range old.Tools {
		for _, op := range t.Operations {
			is, known := now[op.Tool+" "+op.Name]
			var names []string
			for _, m := range op.Meters {
				same := func(other spec.Meter) bool { return reflect.DeepEqual(m, other) }
				if known && !slices.ContainsFunc(is, same) && !slices.Contains(names, m.Name) {
					names = append(names, m.Name)
				}
			}
			if len(names) > 0 {
				changed = append(changed, op.Name+" "+strings.Join(names, "+"))
			}
		}
	}
	if len(changed) > 0 {
		d.list("counts no longer, or elsewhere, for budgets", changed)
	}
}

// metersOf returns the meters of a connector's operations, by the names of these.
func metersOf(c *spec.Connector) map[string][]spec.Meter {
	all := map[string][]spec.Meter{}
	for _, t := range c.Tools {
		for _, op := range t.Operations {
			all[op.Tool+" "+op.Name] = op.Meters
		}
	}
	return all
}
