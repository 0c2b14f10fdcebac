package spec

import (
	"fmt"
	"strings"
)

// ToolConflict returns an error if two connectors have a command of the same
// name, or a connector has one of the taken names, those of commands that the
// sandbox has already, such as the agent's. Names that differ only in case are
// the same, as on some file systems.
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
