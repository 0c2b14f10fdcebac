package spec

import (
	"fmt"
	"strings"
)

// ToolConflict is an error when two connectors would give a box the same
// command, or a connector one that the box has already, such as the agent's:
// taken names those. Commands that differ by case only are the same, as some
// file systems see it.
func ToolConflict(connectors []*Connector, taken ...string) error {
	owner := map[string]string{}
	for _, name := range taken {
		owner[strings.ToLower(name)] = "the session itself"
	}
	for _, c := range connectors {
		for _, t := range c.Tools {
			lower := strings.ToLower(t.Name)
			if other, ok := owner[lower]; ok {
				return fmt.Errorf("the command %q of %s is also a command of %s", t.Name, c.FQN, other)
			}
			owner[lower] = string(c.FQN)
		}
	}
	return nil
}
